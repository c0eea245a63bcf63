#include "kvm/hotspots/guest_code.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "kvm/discovery/qmp_client.h"

namespace vcpulse::kvm {
namespace {

constexpr absl::Duration kTimeout = absl::Milliseconds(200);

}  // namespace

absl::Status MayLookInside(const Vm& vm) {
  if (vm.is_confidential) {
    return absl::FailedPreconditionError(
        "it is a confidential guest: its memory and registers are encrypted");
  }
  if (vm.qmp_address.empty()) {
    return absl::FailedPreconditionError("its QMP address is not known (--qmp)");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GuestCode>> ReadGuestCode(const Vm& vm, int vcpu,
                                                     std::span<const uint64_t> addresses) {
  if (absl::Status status = MayLookInside(vm); !status.ok()) return status;
  QmpCodePlaces places{.vcpu = vcpu, .bytes = 2 * kCodeAround};
  for (const uint64_t address : addresses) {
    places.addresses.push_back(address - std::min(address, kCodeAround));
  }
  const absl::StatusOr<QmpReply> reply =
      QueryQmp(vm.qmp_address, kTimeout, QmpQuestions::kCode, places);
  if (!reply.ok()) return reply.status();
  std::vector<GuestCode> all;
  for (size_t i = 0; i < reply->answers.monitor_texts.size(); ++i) {
    std::vector<uint8_t> bytes = BytesOfDump(reply->answers.monitor_texts[i]);
    if (!bytes.empty()) all.push_back({.address = places.addresses[i], .bytes = std::move(bytes)});
  }
  return all;
}

absl::StatusOr<std::vector<uint8_t>> ReadGuestMemory(const Vm& vm, int vcpu, uint64_t address,
                                                     size_t bytes) {
  if (absl::Status status = MayLookInside(vm); !status.ok()) return status;
  const absl::StatusOr<QmpReply> reply =
      QueryQmp(vm.qmp_address, kTimeout, QmpQuestions::kCode,
               {.vcpu = vcpu, .bytes = bytes, .addresses = {address}});
  if (!reply.ok()) return reply.status();
  const std::vector<std::string>& texts = reply->answers.monitor_texts;
  return texts.empty() ? std::vector<uint8_t>() : BytesOfDump(texts.front());
}

std::vector<uint64_t> HottestPlaces(const AddressCounts& counts, size_t most) {
  std::vector<std::pair<uint64_t, uint64_t>> by_samples;
  by_samples.reserve(counts.counts.size());
  for (const auto& [at, samples] : counts.counts) by_samples.emplace_back(samples, at.address);
  std::ranges::stable_sort(by_samples, std::greater());
  std::vector<uint64_t> places;
  for (const auto& [samples, address] : by_samples) {
    const auto is_close = [address](uint64_t place) {
      return (place > address ? place - address : address - place) < kCodeAround;
    };
    if (places.size() < most && std::ranges::none_of(places, is_close)) places.push_back(address);
  }
  return places;
}

std::vector<uint8_t> BytesOfDump(std::string_view text) {
  std::vector<uint8_t> bytes;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos || line.find("0x", colon) == std::string_view::npos) {
      return bytes;
    }
    for (size_t at = line.find("0x", colon); at != std::string_view::npos;
         at = line.find("0x", at + 1)) {
      const auto byte = ParseNumber<uint8_t>(line.substr(at + 2, 2), 16);
      if (!byte) return bytes;
      bytes.push_back(*byte);
    }
  }
  return bytes;
}

}  // namespace vcpulse::kvm

#include "monitor/hotspots/known_code.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace vcpulse::hotspots {
namespace {

// As many bytes of code are hardly twice in a kernel, and seldom have a place that it patches at
// boot.
constexpr size_t kRecognized = 16;
// A kernel is moved by more than that (2 MiB on x86).
constexpr uint64_t kPage = 4096;

}  // namespace

void KnownCode::Add(kvm::GuestCode code) {
  pieces_[code.address] = {.bytes = std::move(code.bytes), .isa = code.isa};
}

KnownCode::Part KnownCode::PartAround(uint64_t address) const {
  const uint64_t unmoved = address - moved_by_;
  auto found = pieces_.upper_bound(unmoved);
  if (found == pieces_.begin()) return {};
  const auto& [begin, piece] = *--found;
  const uint64_t offset = unmoved - begin;
  if (offset >= piece.bytes.size()) return {};
  const uint64_t from = offset - std::min(offset, kvm::kCodeAround);
  const uint64_t to = std::min<uint64_t>(offset + kvm::kCodeAround, piece.bytes.size());
  return {.begin = begin + moved_by_ + from,
          .bytes = std::span(piece.bytes).subspan(from, to - from),
          .isa = piece.isa};
}

std::optional<uint64_t> KnownCode::LoadOffset(std::span<const kvm::GuestCode> loaded) const {
  if (moved_by_ != 0) return std::nullopt;
  std::map<uint64_t, int> votes;
  for (const kvm::GuestCode& code : loaded) {
    for (size_t at = 0; at + kRecognized <= code.bytes.size(); at += kRecognized) {
      const auto part = std::span(code.bytes).subspan(at, kRecognized);
      const auto place = OnlyPlaceOf(part);
      const uint64_t by = place ? code.address + at - *place : 1;
      if (by % kPage == 0) ++votes[by];
    }
  }
  const auto most = std::ranges::max_element(votes, {}, &std::pair<const uint64_t, int>::second);
  return most == votes.end() ? std::nullopt : std::optional(most->first);
}

std::optional<uint64_t> KnownCode::OnlyPlaceOf(std::span<const uint8_t> bytes) const {
  const std::boyer_moore_horspool_searcher searcher(bytes.begin(), bytes.end());
  std::optional<uint64_t> place;
  for (const auto& [begin, piece] : pieces_) {
    const auto first = piece.bytes.begin();
    for (auto found = std::search(first, piece.bytes.end(), searcher); found != piece.bytes.end();
         found = std::search(found + 1, piece.bytes.end(), searcher)) {
      if (place) return std::nullopt;
      place = begin + static_cast<uint64_t>(found - first);
    }
  }
  return place;
}

std::optional<bool> KnownCode::WaitsAt(uint64_t address) const {
  const Part part = PartAround(address);
  if (part.bytes.empty()) return std::nullopt;
  return kvm::IsInWaitLoop(part.bytes, part.begin, address, part.isa);
}

std::optional<kvm::GuestCode> KnownCode::Around(uint64_t address) const {
  const Part part = PartAround(address);
  if (part.bytes.empty()) return std::nullopt;
  return kvm::GuestCode{
      .address = part.begin, .bytes = {part.bytes.begin(), part.bytes.end()}, .isa = part.isa};
}

}  // namespace vcpulse::hotspots

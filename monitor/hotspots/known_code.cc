#include "monitor/hotspots/known_code.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vcpulse::hotspots {

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

std::optional<bool> KnownCode::WaitsAt(uint64_t address) const {
  const Part part = PartAround(address);
  if (part.bytes.empty()) return std::nullopt;
  return kvm::HasWaitHint(part.bytes, part.begin, part.isa);
}

std::optional<kvm::GuestCode> KnownCode::Around(uint64_t address) const {
  const Part part = PartAround(address);
  if (part.bytes.empty()) return std::nullopt;
  return kvm::GuestCode{
      .address = part.begin, .bytes = {part.bytes.begin(), part.bytes.end()}, .isa = part.isa};
}

}  // namespace vcpulse::hotspots

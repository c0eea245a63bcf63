#include "monitor/hotspots/known_code.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace vcpulse::hotspots {
namespace {

// As many bytes of code are hardly twice in a kernel, and seldom have a place that it patches at
// boot.
constexpr size_t kRecognized = 16;
constexpr size_t kMostLookedFor = 64;  // of such parts
// Two of them are no chance.
constexpr int kEnough = 2;
// A kernel is moved by more than that (2 MiB on x86).
constexpr uint64_t kPage = 4096;

bool IsKernels(uint64_t address) { return kvm::ModeOfAddress(address) == kvm::GuestMode::kKernel; }

}  // namespace

void KnownCode::Add(kvm::GuestCode code) {
  pieces_[code.address] = {.bytes = std::move(code.bytes), .isa = code.isa};
}

KnownCode::Place KnownCode::Locate(std::span<const kvm::GuestCode> running) const {
  if (pieces_.empty()) return {};
  std::map<uint64_t, int> votes;
  int here = 0;
  size_t looked_for = 0;
  for (const kvm::GuestCode& code : running) {
    if (!IsKernels(code.address)) continue;
    for (size_t at = 0; at + kRecognized <= code.bytes.size(); at += kRecognized) {
      if (++looked_for > kMostLookedFor) break;
      const auto part = std::span(code.bytes).subspan(at, kRecognized);
      if (IsAt(code.address + at, part).value_or(false)) {
        if (++here == kEnough) return {.found = Place::Found::kHere};
        continue;
      }
      if (moved_by_ != 0) continue;
      const auto place = OnlyPlaceOf(part);
      const uint64_t by = place ? code.address + at - *place : 1;
      if (by % kPage == 0 && ++votes[by] == kEnough) {
        return {.found = Place::Found::kMoved, .moved_by = by};
      }
    }
  }
  return {.found = looked_for > 0 ? Place::Found::kNowhere : Place::Found::kNotCompared};
}

std::optional<bool> KnownCode::IsAt(uint64_t address, std::span<const uint8_t> bytes) const {
  std::optional<bool> is_at;
  const uint64_t unmoved = address - moved_by_;
  for (const auto& [begin, piece] : pieces_) {
    const uint64_t offset = unmoved - begin;
    if (offset >= piece.bytes.size() || piece.bytes.size() - offset < bytes.size()) continue;
    const auto there = std::span(piece.bytes).subspan(offset, bytes.size());
    is_at = is_at.value_or(false) || std::ranges::equal(there, bytes);
  }
  return is_at;
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

template <typename Take>
void KnownCode::ForEachPartAround(uint64_t address, Take take) const {
  const uint64_t unmoved = address - moved_by_;
  for (const auto& [begin, piece] : pieces_) {
    const uint64_t offset = unmoved - begin;
    if (offset >= piece.bytes.size()) continue;
    const uint64_t from = offset - std::min(offset, kvm::kCodeAround);
    const uint64_t to = std::min<uint64_t>(offset + kvm::kCodeAround, piece.bytes.size());
    const auto bytes = std::span(piece.bytes).subspan(from, to - from);
    if (!take(begin + moved_by_ + from, bytes, piece.isa)) return;
  }
}

std::optional<bool> KnownCode::WaitsAt(uint64_t address) const {
  std::optional<bool> waits;
  ForEachPartAround(address, [&](uint64_t begin, std::span<const uint8_t> bytes, kvm::Isa isa) {
    waits = kvm::IsInWaitLoop(bytes, begin, address, isa);
    return !*waits;
  });
  return waits;
}

std::optional<kvm::GuestCode> KnownCode::Around(uint64_t address) const {
  std::optional<kvm::GuestCode> around;
  ForEachPartAround(address, [&](uint64_t begin, std::span<const uint8_t> bytes, kvm::Isa isa) {
    around = {.address = begin, .bytes = {bytes.begin(), bytes.end()}, .isa = isa};
    return false;
  });
  return around;
}

}  // namespace vcpulse::hotspots

#include "monitor/hotspots/orc.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <ranges>

namespace vcpulse::hotspots {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are read as they lie");

constexpr size_t kPlaceBytes = 4;
constexpr size_t kEntryBytes = 6;
// Debian's kernels have some 400,000; a damaged file may claim anything.
constexpr size_t kMostEntries = size_t{4} << 20;

// Numbers of registers (ORC_REG_*).
constexpr uint64_t kUndefined = 0;
constexpr uint64_t kPreviousStack = 1;
constexpr uint64_t kFrame = 4;
constexpr uint64_t kStack = 5;
constexpr uint64_t kFrameIndirect = 8;
constexpr uint64_t kStackIndirect = 9;

// Types (ORC_TYPE_CALL) and how many bits they have.
constexpr uint64_t kOldCall = 0;
constexpr uint64_t kOldMask = 3;
constexpr uint64_t kNewCall = 2;  // from Linux 6.4 on
constexpr uint64_t kNewMask = 7;

// The fields of an entry: 16 bits each of offsets, 4 of registers, then the type.
int16_t OffsetOf(uint64_t entry) { return static_cast<int16_t>(entry & 0xffff); }
int16_t KeptOffsetOf(uint64_t entry) { return static_cast<int16_t>(entry >> 16 & 0xffff); }
uint64_t StackRegisterOf(uint64_t entry) { return entry >> 32 & 0xf; }
uint64_t FrameRegisterOf(uint64_t entry) { return entry >> 36 & 0xf; }
uint64_t TypeOf(uint64_t entry, uint64_t mask) { return entry >> 40 & mask; }

std::optional<OrcFrame::Base> BaseOf(uint64_t entry) {
  switch (StackRegisterOf(entry)) {
    case kStack:
      return OrcFrame::Base::kStack;
    case kFrame:
      return OrcFrame::Base::kFrame;
    case kStackIndirect:
      return OrcFrame::Base::kAtStack;
    case kFrameIndirect:
      return OrcFrame::Base::kAtFrame;
    default:
      return std::nullopt;
  }
}

std::optional<OrcFrame::Kept> KeptOf(uint64_t entry) {
  switch (FrameRegisterOf(entry)) {
    case kUndefined:
      return OrcFrame::Kept::kUnchanged;
    case kPreviousStack:
      return OrcFrame::Kept::kBelowCaller;
    case kFrame:
      return OrcFrame::Kept::kAtFrame;
    default:
      return std::nullopt;
  }
}

}  // namespace

OrcTable OrcTable::Parse(std::span<const uint8_t> places, uint64_t places_address,
                         std::span<const uint8_t> entries) {
  OrcTable table;
  const size_t count =
      std::min({places.size() / kPlaceBytes, entries.size() / kEntryBytes, kMostEntries});
  table.places_.reserve(count);
  std::array<size_t, kNewMask + 1> types{};
  for (size_t i = 0; i < count; ++i) {
    int32_t distance = 0;
    std::memcpy(&distance, places.subspan(i * kPlaceBytes).data(), kPlaceBytes);
    uint64_t entry = 0;
    std::memcpy(&entry, entries.subspan(i * kEntryBytes).data(), kEntryBytes);
    const uint64_t own = places_address + i * kPlaceBytes;
    table.places_.push_back(
        {.address = own + static_cast<uint64_t>(int64_t{distance}), .entry = entry});
    if (StackRegisterOf(entry) == kStack) ++types[TypeOf(entry, kNewMask)];
  }
  const bool is_new = types[kNewCall] > types[kOldCall];
  table.call_type_ = is_new ? kNewCall : kOldCall;
  table.type_mask_ = is_new ? kNewMask : kOldMask;
  // The build sorts them; of two at one address the kernel, too, takes the one that says something.
  const auto order = [](const Place& place) {
    return std::pair(place.address, StackRegisterOf(place.entry) != kUndefined);
  };
  std::ranges::stable_sort(table.places_, {}, order);
  return table;
}

std::optional<OrcFrame> OrcTable::Find(uint64_t address) const {
  const auto after = std::ranges::upper_bound(places_, address - moved_by_, {}, &Place::address);
  if (after == places_.begin()) return std::nullopt;
  const uint64_t entry = std::prev(after)->entry;
  const auto base = BaseOf(entry);
  const auto kept = KeptOf(entry);
  // Before 5.12 it meant another place, and which of the old kernels this is cannot be told.
  if (base == OrcFrame::Base::kAtStack && call_type_ == kOldCall) return std::nullopt;
  if (!base || !kept || TypeOf(entry, type_mask_) != call_type_) return std::nullopt;
  return OrcFrame{
      .base = *base, .offset = OffsetOf(entry), .kept = *kept, .kept_offset = KeptOffsetOf(entry)};
}

}  // namespace vcpulse::hotspots

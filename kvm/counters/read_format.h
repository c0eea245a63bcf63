#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vcpulse::kvm {

// Counters of one group at most.
inline constexpr size_t kMaxGroupEvents = 8;

// Groups of one vCPU at most.
inline constexpr size_t kMaxVcpuGroups = 8;

// Words of the largest group read: { nr, time_enabled, time_running, { value, id } * nr }, the
// layout of PERF_FORMAT_GROUP | ID | TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING in perf_event_open(2).
inline constexpr size_t kGroupWords = 3 + 2 * kMaxGroupEvents;

// Cumulative values of one group. Slot i holds the event whose id was i-th in `ids`.
struct GroupValues {
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  std::array<uint64_t, kMaxGroupEvents> counts{};

  bool operator==(const GroupValues&) const = default;
};

// Takes a group read apart. Values are found by id, never by position. Nothing where the read is
// too short for its own count, or where one of `ids` (at most kMaxGroupEvents) is not in it.
// Allocates nothing.
std::optional<GroupValues> ParseGroupRead(std::span<const uint64_t> words,
                                          std::span<const uint64_t> ids);

}  // namespace vcpulse::kvm

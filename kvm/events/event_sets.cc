#include "kvm/events/event_sets.h"

#include <linux/perf_event.h>

#include <array>

namespace vcpulse::kvm {
namespace {

// Misses of loads in the first-level data cache; on Arm the kernel counts its refills.
constexpr uint64_t kL1dLoadMisses = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                                    PERF_COUNT_HW_CACHE_RESULT_MISS << 16;

// Ordered so that each hardware set is the head of the one above it.
std::span<const Event> HardwareEvents() {
  static const std::array<Event, 7> events = {{
      {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
      {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
      {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
      {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
      {"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, kL1dLoadMisses},
      {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
      {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
  }};
  return events;
}

std::span<const Event> SoftwareEvents() {
  static const std::array<Event, 1> events = {{
      {.name = "task-clock",
       .type = PERF_TYPE_SOFTWARE,
       .config = PERF_COUNT_SW_TASK_CLOCK,
       .host_side = true},
  }};
  return events;
}

struct NamedSet {
  EventSet set;
  std::string_view name;
};

constexpr std::array<NamedSet, 6> kNames = {{
    {EventSet::kFull, "full"},
    {EventSet::kCore, "core"},
    {EventSet::kBranches, "branches"},
    {EventSet::kMin, "min"},
    {EventSet::kCycles, "cycles"},
    {EventSet::kDegraded, "degraded"},
}};

}  // namespace

std::string_view ToString(EventSet set) {
  for (const NamedSet& named : kNames) {
    if (named.set == set) return named.name;
  }
  return "";
}

std::optional<EventSet> ParseEventSet(std::string_view name) {
  for (const NamedSet& named : kNames) {
    if (named.name == name) return named.set;
  }
  return std::nullopt;
}

std::span<const Event> EventsOf(EventSet set) {
  switch (set) {
    case EventSet::kFull:
      return HardwareEvents();
    case EventSet::kCore:
      return HardwareEvents().first(5);
    case EventSet::kBranches:
      return HardwareEvents().first(4);
    case EventSet::kMin:
      return HardwareEvents().first(2);
    case EventSet::kCycles:
      return HardwareEvents().first(1);
    case EventSet::kDegraded:
      return SoftwareEvents();
  }
  return {};
}

std::optional<EventSet> NextSmaller(EventSet set) {
  switch (set) {
    case EventSet::kFull:
      return EventSet::kCore;
    case EventSet::kCore:
      return EventSet::kBranches;
    case EventSet::kBranches:
      return EventSet::kMin;
    case EventSet::kMin:
      return EventSet::kCycles;
    case EventSet::kCycles:
    case EventSet::kDegraded:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace vcpulse::kvm

#pragma once

#include <cstddef>
#include <optional>

namespace vcpulse::core {

// Which slot of the counts holds what. Absent: not counted in this epoch.
struct EventSlots {
  std::optional<size_t> cycles;
  std::optional<size_t> instructions;
  std::optional<size_t> branches;
  std::optional<size_t> branch_misses;
  std::optional<size_t> cache_misses;
  std::optional<size_t> l1d_misses;
  std::optional<size_t> ref_cycles;
  std::optional<size_t> pause;
  bool pause_in_cycles = false;  // else `pause` holds instructions

  bool operator==(const EventSlots&) const = default;
};

// The slots of the named events, by perf's names; "pause" is a count of PAUSE instructions from
// elsewhere. `names` is any range of string-like values, in the order of the counts.
template <typename Names>
EventSlots FindSlots(const Names& names) {
  EventSlots slots;
  size_t i = 0;
  for (const auto& name : names) {
    if (name == "cycles") slots.cycles = i;
    if (name == "instructions") slots.instructions = i;
    if (name == "branches" || name == "branch-instructions") slots.branches = i;
    if (name == "branch-misses") slots.branch_misses = i;
    if (name == "cache-misses") slots.cache_misses = i;
    if (name == "L1-dcache-load-misses" || name == "l1d_cache_refill") slots.l1d_misses = i;
    if (name == "ref-cycles") slots.ref_cycles = i;
    // Intel's published event lists: 0xEC/0x40, 0xCC/0x40 since Ice Lake, 0xCC/0x40 before.
    const bool in_cycles = name == "cpu_clk_unhalted.pause";
    if (in_cycles || name == "misc_retired.pause_inst" || name == "rob_misc_events.pause_inst" ||
        name == "pause") {
      slots.pause = i;
      slots.pause_in_cycles = in_cycles;
    }
    ++i;
  }
  return slots;
}

}  // namespace vcpulse::core

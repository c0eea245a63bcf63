#pragma once

#include <cstddef>
#include <optional>

namespace vcpulse::core {

// Which slot of the counts holds what. Absent: not counted in this epoch.
struct EventSlots {
  std::optional<size_t> cycles;
  std::optional<size_t> instructions;
  std::optional<size_t> ref_cycles;

  bool operator==(const EventSlots&) const = default;
};

// The slots of the named events, by perf's names. `names` is any range of string-like values, in
// the order of the counts.
template <typename Names>
EventSlots FindSlots(const Names& names) {
  EventSlots slots;
  size_t i = 0;
  for (const auto& name : names) {
    if (name == "cycles") slots.cycles = i;
    if (name == "instructions") slots.instructions = i;
    if (name == "ref-cycles") slots.ref_cycles = i;
    ++i;
  }
  return slots;
}

}  // namespace vcpulse::core

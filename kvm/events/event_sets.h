#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kvm/events/event.h"

namespace vcpulse::kvm {

// What is counted on each vCPU, from most to least. kDegraded is for hosts without a usable PMU: a
// software clock whose times are exact and which counts host and guest time alike.
enum class EventSet { kFull, kCore, kBranches, kMin, kCycles, kDegraded };

// "full", "core", "branches", "min", "cycles", "degraded"
std::string_view ToString(EventSet set);
std::optional<EventSet> ParseEventSet(std::string_view name);

// The events of a set; the first one leads the group and is never left out.
std::span<const Event> EventsOf(EventSet set);

// One step down the ladder; nothing below kCycles (and nothing below kDegraded).
std::optional<EventSet> NextSmaller(EventSet set);

}  // namespace vcpulse::kvm

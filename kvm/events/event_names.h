#pragma once

// perf's names for the events that every PMU may have: hardware, software and cache events
// (enums of include/uapi/linux/perf_event.h; names as `perf list` of Linux 6.1 prints them). Pure
// tables: whether this host opens one of them, the kernel alone says.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvm/events/event.h"

namespace vcpulse::kvm {

enum class GenericKind { kHardware, kSoftware, kCache };

std::string_view ToString(GenericKind kind);  // "hardware", "software", "cache"

// One event of the tables.
struct GenericEvent {
  GenericKind kind = GenericKind::kHardware;
  Event event;                       // named as vcpulse prints it
  std::vector<std::string> aliases;  // other names of perf's; of a cache event none is listed

  bool operator==(const GenericEvent&) const = default;
};

// All of them: hardware, then software, then the whole matrix of cache events (cache x load, store,
// prefetch x access, miss). perf refuses ten of that matrix which it knows no CPU for
// (L1-icache-stores, iTLB-prefetches, ...); here the kernel is asked.
std::span<const GenericEvent> GenericEvents();

// The event of a name in upper or lower case, or nothing. Cache events are composed as perf does
// it: CACHE[-OP][-RESULT] with perf's words for each, a load and an access where nothing is said,
// so "L1-dcache-loads", "l1d-read-access" and "L1-data" are one. Event.name is `name` itself (of
// hardware and software events in lower case), but `cycles` for cpu-cycles and `branches` for
// branch-instructions, the names that the rest of vcpulse looks for.
std::optional<Event> FindGenericEvent(std::string_view name);

}  // namespace vcpulse::kvm

#pragma once

// Which events this host opens, found out by opening them.

#include <string>
#include <string_view>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/events/event.h"
#include "kvm/events/event_catalog.h"

namespace vcpulse::kvm {

// An event of this host by its name.
struct ListedEvent {
  std::string name;                  // as --events takes it
  std::vector<std::string> aliases;  // other names
  std::string kind;                  // "hardware", "software", "cache", "pmu", "tracepoint"
  Event event;
  std::string obstacle;  // why it is not to be opened; empty where it may be

  bool operator==(const ListedEvent&) const = default;
};

// Every generic event and every named event of the core PMUs whose name, alias or kind matches
// `pattern`; tracepoints too where there is a pattern, as there are thousands. All match an empty
// pattern; one without wildcards (* ? [) matches what it is a part of, in upper or lower case.
// Reads tracepoint ids; any thread.
std::vector<ListedEvent> ListEvents(const EventCatalog& catalog, std::string_view pattern);

// Opens `event` alone, disabled, on the calling thread, with the attributes that `record` uses, and
// closes it. Returns 0, or the errno of perf_event_open.
int TryToOpen(PerfEvents& perf, const Event& event);

// What that errno means for an event that was opened alone, in a few words; 0: "opens".
std::string OpenAnswer(int error);

}  // namespace vcpulse::kvm

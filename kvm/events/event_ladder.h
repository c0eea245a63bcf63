#pragma once

// The ladder: what is tried on a VM's vCPUs, from most to least, until a rung opens and runs. Pure.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvm/events/event.h"
#include "kvm/events/event_sets.h"

namespace vcpulse::kvm {

struct Rung {
  std::string name;  // of its set; "custom" for events by name
  // Members of one unit are always read together. The first event of the first unit leads.
  std::vector<std::vector<Event>> units;
  // false: all units are one group. true: they are spread over as many groups as they need, each of
  // at most `largest_group` events, which take turns on the PMU.
  bool multiplexed = false;
  size_t largest_group = 0;
};

// What is asked for: a set, or events by name instead.
struct Wanted {
  EventSet set = EventSet::kFull;  // the largest to try
  EventRequest events;             // where not empty, in place of the set
  // What this CPU counts PAUSE by: goes with EventSet::kFull.
  std::optional<Event> pause;
  std::string pause_distrust;  // why it is not opened all the same; empty: it is
  bool multiplex = false;

  bool ByName() const { return !events.groups.empty() || !events.absent.empty(); }
  // Events by name of which none takes a hardware counter.
  bool IsSoftwareOnly() const;
  bool HasPause() const { return pause.has_value() && set == EventSet::kFull && !ByName(); }
};

// The rungs, at least one, but for EventSet::kDegraded, which has none. A set steps down the sets,
// "full" first without cache-misses. `pause` stays longer than cache-misses and
// L1-dcache-load-misses do: it alone shows a spin, and they only rule work out. Without `pause`
// ref-cycles go before L1-dcache-load-misses.
// Events by name lose their last unit at each step; `cycles` leads and is put in front where it was
// not named, since residency and bands need it. Multiplexed groups become smaller by one event,
// down to the largest unit.
std::vector<Rung> LadderOf(const Wanted& wanted);

// All events of a rung, in order.
std::vector<Event> EventsOf(const Rung& rung);

// The units of a degraded recording: the software clock leads, then the host-side events that were
// named.
std::vector<std::vector<Event>> DegradedUnits(const Wanted& wanted);

}  // namespace vcpulse::kvm

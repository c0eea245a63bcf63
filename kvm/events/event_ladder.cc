#include "kvm/events/event_ladder.h"

#include <algorithm>
#include <utility>

#include "kvm/counters/read_format.h"

namespace vcpulse::kvm {
namespace {

using Units = std::vector<std::vector<Event>>;

std::vector<Event> EventsOfSet(EventSet set) {
  const std::span<const Event> events = EventsOf(set);
  return {events.begin(), events.end()};
}

bool IsCycles(const Event& event) { return event.name == "cycles"; }

// `cycles` to the front of all: its unit first, and first in it.
void LetCyclesLead(Units& units) {
  const auto unit = std::ranges::find_if(units, [](const std::vector<Event>& members) {
    return std::ranges::any_of(members, IsCycles);
  });
  if (unit == units.end()) {
    units.insert(units.begin(), {EventsOf(EventSet::kCycles).front()});
    return;
  }
  std::ranges::stable_partition(*unit, IsCycles);
  std::rotate(units.begin(), unit, unit + 1);
}

// The IPC comes from one group: instructions join cycles where both stand alone.
void JoinInstructions(Units& units) {
  if (units.front().size() != 1) return;
  const auto instructions = std::ranges::find_if(units, [](const std::vector<Event>& members) {
    return members.size() == 1 && members.front().name == "instructions";
  });
  if (instructions == units.end()) return;
  units.front().push_back(instructions->front());
  units.erase(instructions);
}

Units UnitsOf(const Wanted& wanted) {
  Units units;
  if (wanted.ByName()) {
    units = wanted.events.groups;
  } else {
    for (const Event& event : EventsOf(wanted.set)) units.push_back({event});
    if (wanted.HasPause()) units.push_back({*wanted.pause});
  }
  LetCyclesLead(units);
  JoinInstructions(units);
  return units;
}

// Each rung has the events of the one before but for some: what was given up stays so.
std::vector<Rung> SetLadder(const Wanted& wanted) {
  std::vector<Rung> ladder;
  const auto add = [&ladder](EventSet set, std::vector<Event> events) {
    ladder.push_back({.name = std::string(ToString(set)), .units = {std::move(events)}});
  };
  EventSet set = wanted.set;
  if (set == EventSet::kFull) {
    std::vector<Event> events = EventsOfSet(set);
    if (wanted.HasPause()) events.push_back(*wanted.pause);
    add(set, events);
    const auto add_without = [&](std::string_view name) {
      std::erase_if(events, [name](const Event& event) { return event.name == name; });
      add(EventSet::kFull, events);
    };
    add_without("cache-misses");
    if (wanted.HasPause()) {
      add_without("L1-dcache-load-misses");
      add_without(wanted.pause->name);
    }
    set = wanted.HasPause() ? EventSet::kBranches : EventSet::kCore;
  }
  add(set, EventsOfSet(set));
  while (const std::optional<EventSet> smaller = NextSmaller(set)) {
    set = *smaller;
    add(set, EventsOfSet(set));
  }
  return ladder;
}

std::vector<Rung> MultiplexLadder(const std::string& name, const Units& units) {
  size_t smallest = 1;
  for (const auto& unit : units) smallest = std::max(smallest, unit.size());
  std::vector<Rung> ladder;
  for (size_t size = std::max(kMaxGroupEvents, smallest); size >= smallest; --size) {
    ladder.push_back({.name = name, .units = units, .multiplexed = true, .largest_group = size});
  }
  return ladder;
}

std::vector<Rung> NamedLadder(Units units) {
  std::vector<Rung> ladder;
  for (; !units.empty(); units.pop_back()) ladder.push_back({.name = "custom", .units = units});
  return ladder;
}

}  // namespace

bool Wanted::IsSoftwareOnly() const {
  return ByName() && std::ranges::all_of(events.groups, [](const std::vector<Event>& unit) {
           return std::ranges::all_of(unit, &Event::host_side);
         });
}

std::vector<Rung> LadderOf(const Wanted& wanted) {
  if (!wanted.ByName() && wanted.set == EventSet::kDegraded) return {};
  if (wanted.multiplex) {
    return MultiplexLadder(wanted.ByName() ? "custom" : std::string(ToString(wanted.set)),
                           UnitsOf(wanted));
  }
  return wanted.ByName() ? NamedLadder(UnitsOf(wanted)) : SetLadder(wanted);
}

std::vector<Event> EventsOf(const Rung& rung) {
  std::vector<Event> events;
  for (const auto& unit : rung.units) events.insert(events.end(), unit.begin(), unit.end());
  return events;
}

std::vector<std::vector<Event>> DegradedUnits(const Wanted& wanted) {
  const Event& clock = EventsOf(EventSet::kDegraded).front();
  Units units = {{clock}};
  for (const auto& unit : wanted.events.groups) {
    std::vector<Event> host_side;
    for (const Event& event : unit) {
      if (event.host_side && event.name != clock.name) host_side.push_back(event);
    }
    if (!host_side.empty()) units.push_back(std::move(host_side));
  }
  return units;
}

}  // namespace vcpulse::kvm

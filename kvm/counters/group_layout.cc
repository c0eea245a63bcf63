#include "kvm/counters/group_layout.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <utility>

namespace vcpulse::kvm {
namespace {

// By name or number alone, so that each core PMU counts its own.
bool IsOfEveryPmu(const Event& event) {
  const bool generic = event.type == PERF_TYPE_HARDWARE || event.type == PERF_TYPE_HW_CACHE ||
                       event.type == PERF_TYPE_RAW;
  return generic && event.pmu.empty() && !event.host_side;
}

// The generic event as this PMU counts it.
Event BoundTo(Event event, const Pmu& pmu) {
  if (event.type == PERF_TYPE_RAW) {
    event.type = pmu.type;
  } else {
    event.config |= uint64_t{pmu.type} << PERF_PMU_TYPE_SHIFT;
  }
  return event;
}

}  // namespace

std::vector<GroupLayout> LayoutOf(std::span<const Event> events, std::span<const Pmu> core_pmus) {
  if (core_pmus.size() < 2) return {{.pmu = "", .events = {events.begin(), events.end()}}};

  std::vector<GroupLayout> layout;
  for (const Pmu& pmu : core_pmus) {
    GroupLayout group{.pmu = pmu.name, .events = {}};
    std::vector<Event> own;
    for (const Event& event : events) {
      if (IsOfEveryPmu(event)) {
        group.events.push_back(BoundTo(event, pmu));
      } else if (!event.host_side && event.pmu == pmu.name) {
        own.push_back(event);
      }
    }
    group.events.insert(group.events.end(), own.begin(), own.end());
    if (!group.events.empty()) layout.push_back(std::move(group));
  }
  GroupLayout rest;
  for (const Event& event : events) {
    const bool of_one =
        !event.host_side && std::ranges::find(core_pmus, event.pmu, &Pmu::name) != core_pmus.end();
    if (!IsOfEveryPmu(event) && !of_one) rest.events.push_back(event);
  }
  if (!rest.events.empty()) layout.push_back(std::move(rest));
  return layout;
}

}  // namespace vcpulse::kvm

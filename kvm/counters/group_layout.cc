#include "kvm/counters/group_layout.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace vcpulse::kvm {
namespace {

bool IsGeneric(const Event& event) {
  return event.type == PERF_TYPE_HARDWARE || event.type == PERF_TYPE_HW_CACHE ||
         event.type == PERF_TYPE_RAW;
}

bool BelongsTo(const Event& event, std::span<const Pmu> core_pmus) {
  return std::ranges::find(core_pmus, event.type, &Pmu::type) != core_pmus.end();
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
      // PERF_TYPE_RAW is also the type of the first core PMU of x86: rNNN and cpu_core/.../ look
      // alike, and the name tells them apart.
      const bool named_pmu = event.name.find('/') != std::string::npos;
      if (!event.host_side && IsGeneric(event) && !named_pmu) {
        group.events.push_back(BoundTo(event, pmu));
      } else if (!event.host_side && event.type == pmu.type) {
        own.push_back(event);
      }
    }
    group.events.insert(group.events.end(), own.begin(), own.end());
    if (!group.events.empty()) layout.push_back(std::move(group));
  }
  GroupLayout rest;
  for (const Event& event : events) {
    const bool counted = !event.host_side && (IsGeneric(event) || BelongsTo(event, core_pmus));
    if (!counted) rest.events.push_back(event);
  }
  if (!rest.events.empty()) layout.push_back(std::move(rest));
  return layout;
}

}  // namespace vcpulse::kvm

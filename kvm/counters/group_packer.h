#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/events/event.h"
#include "kvm/events/pmu.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// The units in as few groups as the PMU takes, in order, each of at most `largest_group` events but
// for a unit that is larger by itself. How many counters there are is found by trying on the first
// of `vcpus` whose thread lives: the kernel refuses a group that can never run (EINVAL), and
// nothing else says how many that is for these events. `core_pmus` as in LayoutOf.
std::vector<std::vector<Event>> PackGroups(PerfEvents& perf, std::span<const Vcpu> vcpus,
                                           std::span<const std::vector<Event>> units,
                                           size_t largest_group, std::span<const Pmu> core_pmus);

}  // namespace vcpulse::kvm

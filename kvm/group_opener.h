#pragma once

// Opens the counter groups of one VM: the same events on every vCPU, as many of the asked-for set
// as this host gives.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counter_group.h"
#include "kvm/event.h"
#include "kvm/event_sets.h"
#include "kvm/perf_events.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// A vCPU whose group could not be opened.
struct UnopenedVcpu {
  Vcpu vcpu;
  int error = 0;
  std::string reason;
};

// Groups that are open, not yet enabled.
struct OpenedGroups {
  EventSet set = EventSet::kFull;
  std::vector<Event> events;  // slots of the counts
  std::vector<AbsentEvent> absent;
  std::vector<Vcpu> vcpus;  // that have a group, in the order of `groups`
  std::vector<CounterGroup> groups;
  std::vector<UnopenedVcpu> unopened;
  std::string degraded_reason;  // why no hardware counter is read; empty where they are
};

struct OpenOptions {
  EventSet set = EventSet::kFull;    // the largest to try
  bool require_counters = false;     // an error instead of kDegraded
  bool force_mediated_vpmu = false;  // open although KVM runs with a mediated vPMU
};

// Tries options.set and, where the group does not fit, the smaller ones. An event that the PMU does
// not have is left out alone. Without a usable PMU the set is kDegraded.
// Errors: PermissionDenied, ResourceExhausted (descriptors), FailedPrecondition (mediated vPMU; no
// counters where they are required), NotFound (no vCPU thread is left), each with what to do.
// `perf` must outlive the groups. `root` as in Discovery.
absl::StatusOr<OpenedGroups> OpenGroups(PerfEvents& perf, const std::string& root, const Vm& vm,
                                        const OpenOptions& options);

// Why hardware counting events must not be opened now: KVM of this host runs with a mediated vPMU,
// and our events could stop VMs from booting (kernel: arch/x86/kvm/pmu.c, Linux 7.0). Empty where
// they may. Read anew each time: the modules may have been loaded since.
std::string MediatedVpmuObstacle(const std::string& root);

}  // namespace vcpulse::kvm

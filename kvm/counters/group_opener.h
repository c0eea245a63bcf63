#pragma once

// Opens the counter groups of one VM: the same events on every vCPU, as many of the asked-for set
// as this host gives.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/group_layout.h"
#include "kvm/counters/perf_events.h"
#include "kvm/counters/scheduler_times.h"
#include "kvm/events/event.h"
#include "kvm/events/event_ladder.h"
#include "kvm/events/pmu.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// Descriptors that OpenGroups leaves free: a rescan, a request and a new VM need some.
inline constexpr size_t kSpareDescriptors = 16;

// A vCPU whose groups could not be opened.
struct UnopenedVcpu {
  Vcpu vcpu;
  int error = 0;
  std::string reason;
};

// Groups that are open, not yet enabled.
struct OpenedGroups {
  std::string set;  // name of the rung, or "degraded"
  size_t rung = 0;  // of the ladder; 0 where degraded
  bool multiplexed = false;
  std::vector<GroupLayout> layout;  // of each vCPU; the first is the main group, led by cycles
  size_t core_pmus = 1;  // the first so many groups count the same events, one per core PMU
  std::vector<AbsentEvent> absent;
  std::vector<Vcpu> vcpus;         // that have groups, in the order of `groups`
  std::vector<VcpuGroups> groups;  // each as `layout`
  std::vector<ThreadScheduling> scheduling;
  std::vector<UnopenedVcpu> unopened;
  std::string degraded_reason;  // why no hardware counter is read; empty where they are
};

struct OpenOptions {
  Wanted wanted;
  std::vector<Pmu> core_pmus;        // of this host; two or more: hybrid
  bool require_counters = false;     // an error instead of a degraded recording
  bool force_mediated_vpmu = false;  // open although KVM runs with a mediated vPMU
  // A vCPU that cannot be opened goes to `unopened` with the reason, in place of an error.
  bool as_many_as_open = false;
  // Where a ladder is gone down further: the rung to begin with, and the events given up before.
  size_t first_rung = 0;
  std::vector<AbsentEvent> given_up;
};

// Tries the rungs of LadderOf(options.wanted). An event that the PMU does not have is left out
// alone, on every vCPU and PMU. Without a usable PMU the set is "degraded". After opening, each
// thread's start time is looked at again: a TID that was reused meanwhile is listed as gone.
// Each vCPU takes one descriptor per event of its groups, and two for its scheduling.
// Errors: PermissionDenied, ResourceExhausted (descriptors or memory ran out, kSpareDescriptors
// included), FailedPrecondition (hardware counters beside a mediated vPMU; no counters where they
// are required), InvalidArgument (events in braces that no group holds), NotFound (no vCPU thread
// is left), each with what to do. `perf` must outlive the groups. `root` as in Discovery.
absl::StatusOr<OpenedGroups> OpenGroups(PerfEvents& perf, const std::string& root, const Vm& vm,
                                        const OpenOptions& options);

// Why hardware counting events must not be opened now: KVM of this host runs with a mediated vPMU,
// and our events could stop VMs from booting (kernel: arch/x86/kvm/pmu.c, Linux 7.0). Empty where
// they may. Read anew each time: the modules may have been loaded since.
std::string MediatedVpmuObstacle(const std::string& root);

}  // namespace vcpulse::kvm

#pragma once

// The checks of `vcpulse doctor`, by what they look at: may this process count, is there a PMU,
// what runs here, what is KVM like, how late does a thread wake up.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/pmu.h"
#include "kvm/own_rights.h"
#include "kvm/vm.h"

namespace vcpulse::kvm::doctor {

// The answer to one question about this host.
struct Finding {
  enum class State {
    kOk,
    kFail,     // a recording would not be complete
    kNote,     // good to know, changes nothing about completeness
    kUnknown,  // cannot be told, or could not be tried; `answered` says why
  };

  std::string id;  // stable, kebab-case, such as "paranoid"; one per VM for those about VMs
  State state = State::kOk;
  std::string tried;
  std::string answered;
  std::string fix;        // empty where nothing has to be done
  bool prevents = false;  // a failure with which nothing is recorded, not even degraded
  bool of_vm = false;     // about a VM that runs now

  bool operator==(const Finding&) const = default;
};

std::string_view ToString(Finding::State state);  // "ok", "fail", "note", "unknown"

// What a recording on this host would be.
enum class Verdict { kComplete, kUnknown, kDegraded, kFails };

std::string_view ToString(Verdict verdict);  // "complete", "unknown", "degraded", "fails"

// Whether a VM that runs now may be recorded with less than it has.
bool LeavesAVmUnknown(const Finding& finding);

// kFails where a failure prevents, kDegraded with any other; without failures kUnknown where
// something about a VM that runs now is unknown, else kComplete.
Verdict VerdictOf(std::span<const Finding> findings);

// "paranoid": opens a software clock on the calling thread with kernel mode included, as guest
// counters need it: what kernel.perf_event_paranoid forbids is refused here, PMU or not.
Finding CheckParanoid(PerfEvents& perf, const std::string& root, const OwnRights& own);

// "pid-namespace": whether the PIDs below `root` are those that system calls take here.
Finding CheckPidNamespace(const std::string& root);

// "other-users": the same on the first vCPU of each VM, which may be another user's. A VM that is
// refused is a failure; nothing is recorded only where all of them are. Where no VM shows a vCPU,
// PID 1 stands for other users, and its refusal is a note. `pids_are_ours`: of CheckPidNamespace;
// where false nothing is opened, as the TID would be another thread's.
std::vector<Finding> CheckOtherUsers(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms,
                                     bool pids_are_ours);

// All of the above, then "capabilities" and "seccomp". Where a VM opens, a refusal of one's own
// thread does not prevent a recording.
std::vector<Finding> CheckPermission(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms);

// "capabilities": those that vcpulse can use, and what is not to be had without each missing one.
Finding CheckCapabilities(const OwnRights& own);

// "seccomp": whether a filter is active, as in most containers.
Finding CheckSeccomp(const OwnRights& own);

// Is there a PMU, does it count, which event sets fit and run? All on the calling thread, on which
// a guest-only event rightly counts nothing.

// What the checks of one host have in common.
struct CounterContext {
  PerfEvents& perf;
  const OwnRights& own;
  std::span<const Pmu> cores;  // CorePmus
  std::string mediated;        // MediatedVpmuObstacle; no guest-counting event is opened where set
  std::string machine;         // uname -m
};

// "pmu": the PMUs of sysfs, and whether one of them takes cycles; "hybrid" beside it where the
// cores have more than one kind.
std::vector<Finding> CheckPmus(const CounterContext& context);

// "host-cycles": must move while a busy loop runs.
Finding CheckHostCycles(const CounterContext& context);

// "guest-only": cycles with exclude_host, as vcpulse records them. Must open, be taken by the PMU,
// and count 0.
Finding CheckGuestOnly(const CounterContext& context);

// "events-full", "events-core", "events-min", "events-cycles": each opens as one group and runs,
// counting the host and then, unless KVM runs with a mediated vPMU, as vcpulse records it, where
// all of its counts must be 0. One that gave way to others for more than 5 % of its time is a note.
// Only what `full` lacks is a failure: the smaller sets say where the recording would step down
// to. ref-cycles is not expected but on x86.
std::vector<Finding> CheckEventSets(const CounterContext& context);

// "nmi-watchdog": takes a counter of each CPU where it runs.
Finding CheckNmiWatchdog(const std::string& root);

// Do the VMs that run now show their vCPUs, and are there descriptors enough for them?

// Connects to a QMP address, asks and closes: OK, or why not (as QueryQmp).
using QmpAsker = std::function<absl::Status(const std::string& address)>;

// A VM and what its command line says.
struct SeenVm {
  Vm vm;
  bool qemu = false;
  bool debug_threads = false;
  std::vector<std::string> qmp_addresses;  // as they may be connected to from here
  // kvm-vcpu descriptors for which no thread was found, and which nothing shows to be unplugged.
  int unexplained_descriptors = 0;
};

// Reads the command lines of these VMs. A socket's path is looked for in its QEMU's own root and
// folder, ROOT/proc/PID/root and cwd; an absolute one as it is where that root may not be followed.
std::vector<SeenVm> LookAt(const std::string& root, std::span<const Vm> vms);

// "guests" where no VM runs; else one "vcpus" per VM: a failure where KVM runs and no vCPU thread
// can be told, unknown where some may be missing: found by guest time, or descriptors without
// threads that nothing explains.
std::vector<Finding> CheckVms(std::span<const SeenVm> vms);

// "thread-names" for each QEMU that does not name its vCPU threads.
std::vector<Finding> CheckThreadNames(std::span<const SeenVm> vms);

// "qmp" for each address, at most `most` of them: a silent one is held by another client.
std::vector<Finding> CheckQmp(std::span<const SeenVm> vms, const QmpAsker& ask, size_t most);

// "descriptors": the hard limit against what all vCPUs take, where each takes `per_vcpu`.
Finding CheckDescriptors(const OwnRights& own, std::span<const Vm> vms, int per_vcpu);

// "isolated-cpus": a note where vCPU threads are pinned to CPUs that are kept free of interrupts
// (isolcpus=, nohz_full=): each tick interrupts those that run.
Finding CheckIsolatedCpus(const std::string& root, std::span<const Vm> vms);

// Is KVM there, and what about it changes what the counters mean? From /proc and /sys below `root`
// (as in Discovery).

// "kvm": the modules, or /dev/kvm where KVM is built in. vcpulse itself does not open /dev/kvm.
Finding CheckKvm(const std::string& root);

// "mediated-vpmu": whether open events could keep VMs from starting (Linux 7.0).
Finding CheckMediatedVpmu(const std::string& root);

// "nested": whether guests may run guests.
Finding CheckNested(const std::string& root);

// "virtual-host": whether this host is itself a guest, by the flag of /proc/cpuinfo (x86).
Finding CheckVirtualHost(const std::string& root);

// "debugfs": KVM's debugfs, which shows the vCPU threads of any VMM (x86).
Finding CheckDebugfs(const std::string& root);

// What can be said beside the counters?

// "hot-addresses": the first source that opens on the calling thread; a note where it is not a
// counter's.
Finding CheckHotAddresses(PerfEvents& perf, const std::string& root);

// "competitors": whether who runs on a CPU can be watched, tried on the calling thread's; a note
// where it cannot.
Finding CheckCompetitors(PerfEvents& perf, const std::string& root);

// "reader": whether the kernel takes the program that keeps counters (docs/reading.md), by loading
// it for a moment; a note with the reason where it does not.
Finding CheckReader(const std::string& root);

// "statistics" for each VM, at most `most` of them: the sources of docs/statistics.md; a note where
// none is KVM's.
std::vector<Finding> CheckStatistics(const std::string& root, std::span<const Vm> vms, size_t most);

// How late a thread wakes up here: what a tick will see.

// Sleeps up to `count` times until absolute deadlines `period` apart (CLOCK_MONOTONIC), as the tick
// does, on a thread of its own with timer slack 1 ns. Each sleep's lateness, ns. Ends after 0.3 s
// however late they are.
std::vector<int64_t> MeasureLateness_ns(int count, absl::Duration period);

// "wake-ups": a note where the 99th percentile is over 1 ms.
Finding CheckLateness(std::span<const int64_t> lateness_ns);

// All checks of a host, in the order in which a person would fix what they find.

// Takes about 0.1 s, and up to 0.3 s more for each QMP socket that stays silent (at most 8 are
// asked). Opens counters on the calling thread and on the first vCPU of each VM, and closes them.
// `root` as in Discovery; the counters are those of the running kernel.
std::vector<Finding> Examine(PerfEvents& perf, const std::string& root);

}  // namespace vcpulse::kvm::doctor

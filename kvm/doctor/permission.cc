#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/discovery/vm_probe.h"
#include "kvm/doctor/checks.h"
#include "kvm/events/event_sets.h"
#include "kvm/host.h"

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;

// Opens the software clock of a degraded recording, which needs no PMU, on one thread. Returns 0
// or errno.
int OpenClock(PerfEvents& perf, pid_t tid) {
  perf_event_attr attr = AttrOf(EventsOf(EventSet::kDegraded).front(), /*leader=*/true);
  return perf.Open(attr, tid, /*group_fd=*/-1).error;
}

std::string LevelOf(const std::string& root) {
  const std::optional<int> level = PerfEventParanoid(root);
  return level ? absl::StrCat("kernel.perf_event_paranoid is ", *level)
               : "kernel.perf_event_paranoid cannot be read";
}

// The obstacle that this failure is.
void SetObstacle(const OpenFailure& failure, const OwnRights& own, Finding& finding) {
  OpenAdvice advice = ExplainOpenFailure(failure, own);
  finding.state = State::kFail;
  finding.answered = std::move(advice.cause);
  finding.fix = std::move(advice.remedy);
}

// "other-users" for one thread; an obstacle where it is refused.
Finding CheckThread(PerfEvents& perf, const std::string& root, const OwnRights& own, pid_t pid,
                    pid_t tid, const std::string& what) {
  const std::string owner = OwnerOfProcess(root, pid);
  Finding finding{.id = "other-users",
                  .tried = absl::StrCat("a software clock on ", what,
                                        owner.empty() ? "" : absl::StrCat(" of ", owner))};
  const int error = OpenClock(perf, tid);
  if (error == 0) {
    finding.answered = absl::StrCat("opened ", finding.tried);
  } else if (error == ESRCH) {
    finding.state = State::kUnknown;
    finding.answered = "it ended meanwhile";
  } else {
    SetObstacle({.error = error,
                 .event = "task-clock",
                 .tid = tid,
                 .paranoid = PerfEventParanoid(root),
                 .owner = owner},
                own, finding);
  }
  return finding;
}

struct UsefulCapability {
  Capability capability;
  const char* name;
  const char* without;
};

constexpr std::array<UsefulCapability, 5> kUseful = {{
    {Capability::kPerfmon, "CAP_PERFMON", "other users' vCPUs may not be counted"},
    {Capability::kBpf, "CAP_BPF", "each reading interrupts the vCPUs that run"},
    {Capability::kSysPtrace, "CAP_SYS_PTRACE", "other users' KVM descriptors stay unseen"},
    {Capability::kDacReadSearch, "CAP_DAC_READ_SEARCH", "other users' KVM descriptors stay unseen"},
    {Capability::kSysNice, "CAP_SYS_NICE", "no --realtime"},
}};

}  // namespace

Finding CheckParanoid(PerfEvents& perf, const std::string& root, const OwnRights& own) {
  Finding finding{.id = "paranoid",
                  .tried = "a software clock on vcpulse itself, with kernel mode included"};
  const int error = OpenClock(perf, /*tid=*/0);
  if (error == 0) {
    finding.answered = absl::StrCat("opened; ", LevelOf(root));
    return finding;
  }
  if (error == ENOSYS) {
    finding.state = State::kFail;
    finding.prevents = true;
    finding.answered = "this kernel has no perf events";
    finding.fix = "run a kernel with CONFIG_PERF_EVENTS";
    return finding;
  }
  SetObstacle({.error = error,
               .event = "task-clock",
               .tid = getpid(),
               .paranoid = PerfEventParanoid(root),
               .owner = own.effective_uid ? absl::StrCat("uid ", *own.effective_uid) : ""},
              own, finding);
  finding.prevents = true;
  return finding;
}

Finding CheckPidNamespace(const std::string& root) {
  Finding finding{.id = "pid-namespace", .tried = "NSpid of /proc/self/status"};
  if (PidsAreOurs(root)) {
    finding.answered = "the PIDs in /proc are those of this PID namespace";
    return finding;
  }
  finding.state = State::kFail;
  finding.prevents = true;
  finding.answered = absl::StrCat("the PIDs in ", root, root.ends_with('/') ? "" : "/",
                                  "proc are not those of this process's PID namespace, so their "
                                  "counters cannot be opened");
  finding.fix = "run vcpulse in the host's (docker --pid=host, Kubernetes hostPID: true)";
  return finding;
}

std::vector<Finding> CheckOtherUsers(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms,
                                     bool pids_are_ours) {
  if (!pids_are_ours) {
    return {{.id = "other-users",
             .state = State::kUnknown,
             .tried = "a software clock on other users' threads",
             .answered = "not tried: see pid-namespace"}};
  }
  std::vector<Finding> findings;
  for (const Vm& vm : vms) {
    if (vm.vcpus.empty()) continue;
    const Vcpu& vcpu = vm.vcpus.front();
    const std::string what = absl::StrCat("vCPU ", vcpu.index, " of ", Describe(vm));
    findings.push_back(CheckThread(perf, root, own, vm.pid, vcpu.tid, what));
    // One that has ended meanwhile runs no longer.
    findings.back().of_vm = findings.back().state != State::kUnknown;
  }
  if (findings.empty()) {
    // Without a VM the first process, which is root's, stands for it.
    Finding finding = CheckThread(perf, root, own, 1, 1, "PID 1");
    if (finding.state == State::kFail) finding.state = State::kNote;
    return {std::move(finding)};
  }
  const bool any = std::ranges::find(findings, State::kOk, &Finding::state) != findings.end();
  for (Finding& finding : findings) finding.prevents = !any && finding.state == State::kFail;
  return findings;
}

std::vector<Finding> CheckPermission(PerfEvents& perf, const std::string& root,
                                     const OwnRights& own, std::span<const Vm> vms) {
  std::vector<Finding> findings = {CheckPidNamespace(root), CheckParanoid(perf, root, own)};
  const bool pids_are_ours = findings.front().state == State::kOk;
  for (Finding& finding : CheckOtherUsers(perf, root, own, vms, pids_are_ours)) {
    if (finding.of_vm && finding.state == State::kOk) findings[1].prevents = false;
    findings.push_back(std::move(finding));
  }
  findings.push_back(CheckCapabilities(own));
  findings.push_back(CheckSeccomp(own));
  return findings;
}

Finding CheckCapabilities(const OwnRights& own) {
  Finding finding{.id = "capabilities", .tried = "CapEff of /proc/self/status"};
  if (!own.effective) {
    finding.state = State::kUnknown;
    finding.answered = "cannot be read";
    return finding;
  }
  std::vector<std::string> held;
  std::vector<std::string> missing;
  std::vector<std::string> names;
  for (const UsefulCapability& useful : kUseful) {
    // CAP_SYS_ADMIN is the older, larger key to both.
    const bool has = useful.capability == Capability::kPerfmon ? own.MayMonitor()
                     : useful.capability == Capability::kBpf   ? own.MayLoadBpf()
                                                               : own.Has(useful.capability);
    if (has) {
      held.emplace_back(useful.name);
    } else {
      missing.push_back(absl::StrCat(useful.name, " (", useful.without, ")"));
    }
    names.emplace_back(useful.name);
  }
  if (missing.empty()) {
    finding.answered = absl::StrCat("has ", absl::StrJoin(held, ", "));
    return finding;
  }
  finding.state = State::kNote;
  finding.answered = absl::StrCat("lacks ", absl::StrJoin(missing, ", "));
  // All of them: setcap replaces what the file had.
  std::string lower = absl::StrJoin(names, ",");
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  finding.fix = absl::StrCat("run as root, or `setcap ", lower, "=ep $(which vcpulse)`");
  return finding;
}

Finding CheckSeccomp(const OwnRights& own) {
  Finding finding{.id = "seccomp", .tried = "Seccomp of /proc/self/status"};
  if (!own.seccomp) {
    finding.state = State::kUnknown;
    finding.answered = "cannot be read";
  } else if (*own.seccomp == 0) {
    finding.answered = "no filter";
  } else {
    finding.state = State::kNote;
    finding.answered =
        "a filter is active, as in containers: it may refuse perf_event_open, and guests outside "
        "of "
        "the container are not seen";
    finding.fix = "run vcpulse outside, or allow perf_event_open in the container's profile";
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor

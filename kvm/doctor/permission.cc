#include "kvm/doctor/permission.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/counters/counter_group.h"
#include "kvm/counters/errno_advice.h"
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
  finding.state = State::kObstacle;
  finding.prevents = true;
  finding.answered = std::move(advice.cause);
  finding.remedy = std::move(advice.remedy);
}

struct UsefulCapability {
  Capability capability;
  const char* name;
  const char* without;
};

constexpr std::array<UsefulCapability, 4> kUseful = {{
    {Capability::kPerfmon, "CAP_PERFMON", "other users' vCPUs may not be counted"},
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
    finding.state = State::kObstacle;
    finding.prevents = true;
    finding.answered = "this kernel has no perf events";
    finding.remedy = "run a kernel with CONFIG_PERF_EVENTS";
    return finding;
  }
  SetObstacle({.error = error,
               .event = "task-clock",
               .tid = getpid(),
               .paranoid = PerfEventParanoid(root),
               .owner = own.effective_uid ? absl::StrCat("uid ", *own.effective_uid) : ""},
              own, finding);
  return finding;
}

Finding CheckOtherUsers(PerfEvents& perf, const std::string& root, const OwnRights& own, pid_t pid,
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
    // CAP_SYS_ADMIN is the older, larger key to perf events.
    const bool has =
        useful.capability == Capability::kPerfmon ? own.MayMonitor() : own.Has(useful.capability);
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
  finding.remedy = absl::StrCat("run as root, or `setcap ", lower, "=ep $(which vcpulse)`");
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
    finding.remedy = "run vcpulse outside, or allow perf_event_open in the container's profile";
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor

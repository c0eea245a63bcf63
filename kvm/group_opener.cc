#include "kvm/group_opener.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/errno_advice.h"
#include "kvm/host.h"
#include "kvm/proc_tree.h"

namespace vcpulse::kvm {
namespace {

// What one pass over the vCPUs came to.
enum class Outcome {
  kOpened,
  kEventAbsent,  // `absent` grew: try again without that event
  kDoesNotFit,   // the group is too large for this PMU
  kNoPmu,        // the leader itself is not to be had
  kFailed,       // `error`
};

bool MeansNoPmu(int error) {
  return error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == EBUSY ||
         error == EINVAL;
}

// One attempt to open the groups of a VM.
class Attempt {
 public:
  Attempt(PerfEvents& perf, const std::string& root, const Vm& vm)
      : perf_(perf), root_(root), vm_(vm) {}

  Outcome Run(std::span<const Event> events) {
    result.vcpus.clear();
    result.groups.clear();
    result.unopened.clear();
    result.events.assign(events.begin(), events.end());
    for (const Vcpu& vcpu : vm_.vcpus) {
      const Outcome outcome = OpenOne(vcpu, events);
      if (outcome != Outcome::kOpened) return outcome;
    }
    return Outcome::kOpened;
  }

  OpenedGroups result;
  absl::Status error;
  int leader_error = 0;       // of kNoPmu
  std::string leader_advice;  // of kNoPmu
  std::string fit_advice;     // of kDoesNotFit

 private:
  Outcome OpenOne(const Vcpu& vcpu, std::span<const Event> events) {
    std::vector<RefusedEvent> refused;
    OrErrno<CounterGroup> group = CounterGroup::Open(perf_, vcpu.tid, events, refused);
    if (!group.ok()) return LeaderRefused(vcpu, events.front(), group.error);
    if (!refused.empty()) return SiblingRefused(vcpu, refused.front());
    result.vcpus.push_back(vcpu);
    result.groups.push_back(std::move(group.value));
    return Outcome::kOpened;
  }

  Outcome LeaderRefused(const Vcpu& vcpu, const Event& event, int errno_value) {
    const std::string advice = Advise(vcpu, event, errno_value);
    if (errno_value == ESRCH) {
      result.unopened.push_back({vcpu, errno_value, advice});
      return Outcome::kOpened;
    }
    if (MeansNoPmu(errno_value)) {
      leader_error = errno_value;
      leader_advice = absl::StrCat(event.name, ": ", advice);
      return Outcome::kNoPmu;
    }
    return Failed(errno_value, advice);
  }

  Outcome SiblingRefused(const Vcpu& vcpu, const RefusedEvent& refused) {
    const std::string advice = Advise(vcpu, refused.event, refused.error);
    switch (refused.error) {
      case EINVAL:
        fit_advice = advice;
        return Outcome::kDoesNotFit;
      case ENOENT:
      case ENODEV:
      case EOPNOTSUPP:
        // The leader opened, so there is a PMU: it has other events than this one.
        result.absent.push_back({refused.event.name, refused.error,
                                 "the PMU has no such event; "
                                 "/sys/bus/event_source/devices/*/events lists those it has"});
        return Outcome::kEventAbsent;
      case ESRCH:
        result.unopened.push_back({vcpu, refused.error, advice});
        return Outcome::kOpened;
      default:
        return Failed(refused.error, advice);
    }
  }

  Outcome Failed(int errno_value, const std::string& advice) {
    const std::string message = absl::StrCat("VM ", vm_.name, ": ", advice);
    error = errno_value == EMFILE                           ? absl::ResourceExhaustedError(message)
            : errno_value == EACCES || errno_value == EPERM ? absl::PermissionDeniedError(message)
                                                            : absl::InternalError(message);
    return Outcome::kFailed;
  }

  std::string Advise(const Vcpu& vcpu, const Event& event, int errno_value) const {
    return AdviseOnOpenFailure({.error = errno_value,
                                .event = event.name,
                                .tid = vcpu.tid,
                                .paranoid = PerfEventParanoid(root_),
                                .owner = OwnerOfProcess(root_, vm_.pid)});
  }

  PerfEvents& perf_;
  const std::string& root_;
  const Vm& vm_;
};

std::vector<Event> Without(std::span<const Event> events, std::span<const AbsentEvent> absent) {
  std::vector<Event> kept;
  for (const Event& event : events) {
    bool is_absent = false;
    for (const AbsentEvent& gone : absent) is_absent = is_absent || gone.name == event.name;
    if (!is_absent) kept.push_back(event);
  }
  return kept;
}

// Events of the larger set that the smaller one gives up.
void AddGivenUp(EventSet larger, EventSet smaller, const std::string& reason,
                std::vector<AbsentEvent>& absent) {
  const size_t kept = EventsOf(smaller).size();
  for (const Event& event : EventsOf(larger).subspan(kept)) {
    bool known = false;
    for (const AbsentEvent& gone : absent) known = known || gone.name == event.name;
    if (!known) absent.push_back({event.name, EINVAL, reason});
  }
}

absl::StatusOr<OpenedGroups> Finish(Attempt& attempt, const Vm& vm) {
  if (!attempt.result.groups.empty()) return std::move(attempt.result);
  return absl::NotFoundError(
      absl::StrCat("VM ", vm.name, " (PID ", vm.pid, "): none of its vCPU threads is alive"));
}

absl::StatusOr<OpenedGroups> OpenDegraded(Attempt& attempt, const Vm& vm,
                                          const OpenOptions& options, const std::string& reason) {
  if (options.require_counters) {
    return absl::FailedPreconditionError(absl::StrCat(
        "VM ", vm.name,
        ": no hardware counter can be read, and --require-counters is given: ", reason));
  }
  attempt.result.absent.clear();
  for (const Event& event : EventsOf(options.set)) {
    attempt.result.absent.push_back({event.name, attempt.leader_error, reason});
  }
  attempt.result.set = EventSet::kDegraded;
  attempt.result.degraded_reason = reason;
  switch (attempt.Run(EventsOf(EventSet::kDegraded))) {
    case Outcome::kOpened:
      return Finish(attempt, vm);
    case Outcome::kFailed:
      return attempt.error;
    case Outcome::kEventAbsent:
    case Outcome::kDoesNotFit:
    case Outcome::kNoPmu:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "VM ", vm.name, ": this kernel gives not even a software clock: ", attempt.leader_advice));
}

}  // namespace

std::string MediatedVpmuObstacle(const std::string& root) {
  for (const char* module : {"kvm_intel", "kvm_amd"}) {
    const std::optional<std::string> value = ReadSmallFile(
        absl::StrCat(root, "/sys/module/", module, "/parameters/enable_mediated_pmu"));
    if (value && (value->starts_with('Y') || value->starts_with('1'))) {
      return absl::StrCat("KVM of this host runs with ", module,
                          ".enable_mediated_pmu=Y: while our events are open, VMs could fail to "
                          "start; load ",
                          module, " with enable_mediated_pmu=N, or give --force-mediated-vpmu");
    }
  }
  return "";
}

absl::StatusOr<OpenedGroups> OpenGroups(PerfEvents& perf, const std::string& root, const Vm& vm,
                                        const OpenOptions& options) {
  if (vm.vcpus.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "VM ", vm.name, " (PID ", vm.pid, "): no vCPU thread was found; `vcpulse list` says why"));
  }
  Attempt attempt(perf, root, vm);
  if (options.set == EventSet::kDegraded) {
    return OpenDegraded(attempt, vm, options, "a degraded recording was asked for");
  }
  if (!options.force_mediated_vpmu) {
    const std::string obstacle = MediatedVpmuObstacle(root);
    if (!obstacle.empty()) return absl::FailedPreconditionError(obstacle);
  }
  EventSet set = options.set;
  while (true) {
    attempt.result.set = set;
    switch (attempt.Run(Without(EventsOf(set), attempt.result.absent))) {
      case Outcome::kOpened:
        return Finish(attempt, vm);
      case Outcome::kEventAbsent:
        continue;
      case Outcome::kFailed:
        return attempt.error;
      case Outcome::kNoPmu:
        return OpenDegraded(attempt, vm, options, attempt.leader_advice);
      case Outcome::kDoesNotFit: {
        const std::optional<EventSet> smaller = NextSmaller(set);
        if (!smaller) return OpenDegraded(attempt, vm, options, attempt.fit_advice);
        AddGivenUp(set, *smaller, attempt.fit_advice, attempt.result.absent);
        set = *smaller;
        continue;
      }
    }
  }
}

}  // namespace vcpulse::kvm

#include "kvm/counters/group_opener.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/counters/group_packer.h"
#include "kvm/host.h"
#include "kvm/proc_tree.h"

namespace vcpulse::kvm {
namespace {

// What one pass over the vCPUs came to, beside groups and errors.
struct EventAbsent {};  // one more is in Attempt::absent: try again without it
struct DoesNotFit {     // the group is too large for this PMU
  std::string advice;
};
struct NoPmu {  // the leader itself is not to be had
  int error = 0;
  std::string advice;
};
struct VcpuFailed {  // this one cannot be opened, whatever the events are
  int error = 0;
  std::string advice;
};
using Outcome =
    std::variant<OpenedGroups, EventAbsent, DoesNotFit, NoPmu, VcpuFailed, absl::Status>;

// The errno that says why fewer than kSpareDescriptors can be opened; 0 where they can.
int WhyNoneToSpare() {
  std::array<Fd, kSpareDescriptors> spare;
  for (Fd& fd : spare) {
    fd = Fd(::eventfd(0, EFD_CLOEXEC));
    if (!fd.valid()) return errno;
  }
  return 0;
}

bool MeansNoPmu(int error) {
  return error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == EBUSY ||
         error == EINVAL;
}

bool IsAbsent(const std::vector<AbsentEvent>& absent, const std::string& name) {
  return std::ranges::find(absent, name, &AbsentEvent::name) != absent.end();
}

// The units that are left without the absent events.
std::vector<std::vector<Event>> Without(std::vector<std::vector<Event>> units,
                                        const std::vector<AbsentEvent>& absent) {
  for (auto& unit : units) {
    std::erase_if(unit, [&absent](const Event& event) { return IsAbsent(absent, event.name); });
  }
  std::erase_if(units, [](const auto& unit) { return unit.empty(); });
  return units;
}

// Attempts to open the groups of a VM, each pass with what those before it found.
class Attempt {
 public:
  Attempt(PerfEvents& perf, const std::string& root, const Vm& vm, const OpenOptions& options)
      : absent(options.given_up),
        perf_(perf),
        root_(root),
        vm_(vm),
        options_(options),
        core_pmus_(options.core_pmus) {}

  Outcome Run(const std::vector<Rung>& ladder, size_t number) {
    const Rung& rung = ladder[number];
    const auto units = Without(rung.units, absent);
    std::vector<std::vector<Event>> sets;
    if (rung.multiplexed) {
      sets = PackGroups(perf_, vm_.vcpus, units, rung.largest_group, core_pmus_);
    } else {
      sets = {EventsOf({.name = "", .units = units})};
      if (sets.front().size() > kMaxGroupEvents) {
        return DoesNotFit{absl::StrCat("a group holds at most ", kMaxGroupEvents,
                                       " events: give fewer, or --multiplex, which takes turns")};
      }
    }
    return OpenAll(sets, {.set = rung.name, .rung = number, .multiplexed = rung.multiplexed});
  }

  Outcome RunDegraded(const std::string& reason) {
    core_pmus_.clear();  // software counts on any core
    std::vector<std::vector<Event>> sets = {{}};
    std::vector<Event> beyond;
    for (const auto& unit : Without(DegradedUnits(options_.wanted), absent)) {
      if (sets.back().size() + unit.size() > kMaxGroupEvents) {
        if (!options_.wanted.multiplex) {
          beyond.insert(beyond.end(), unit.begin(), unit.end());
          continue;
        }
        sets.emplace_back();
      }
      sets.back().insert(sets.back().end(), unit.begin(), unit.end());
    }
    Outcome outcome = OpenAll(
        sets, {.set = std::string(ToString(EventSet::kDegraded)), .degraded_reason = reason});
    if (auto* opened = std::get_if<OpenedGroups>(&outcome)) {
      for (const Event& event : beyond) {
        opened->absent.push_back({event.name, 0,
                                  absl::StrCat("a group holds at most ", kMaxGroupEvents,
                                               " events: give fewer, or --multiplex")});
      }
    }
    return outcome;
  }

  std::vector<AbsentEvent> absent;  // that the next pass goes without

 private:
  // `result` is what is known of the groups before they are open.
  Outcome OpenAll(const std::vector<std::vector<Event>>& sets, OpenedGroups result) {
    for (const auto& set : sets) {
      for (GroupLayout& group : LayoutOf(set, core_pmus_)) {
        result.layout.push_back(std::move(group));
      }
    }
    if (result.layout.size() > kMaxVcpuGroups) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the events take ", result.layout.size(), " groups on this PMU and a vCPU has ",
          kMaxVcpuGroups, " at most: give fewer --events"));
    }
    for (const GroupLayout& group : result.layout) {
      if (group.events.size() <= kMaxGroupEvents) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("{", group.events.front().name, ",...}: a group holds at most ",
                       kMaxGroupEvents, " events, and this one would have ", group.events.size()));
    }
    if (result.layout.empty()) return absl::InternalError("no event is left to be opened");
    const bool hybrid = core_pmus_.size() > 1 && !result.layout.front().pmu.empty();
    result.core_pmus = hybrid ? core_pmus_.size() : 1;
    for (const Vcpu& vcpu : vm_.vcpus) {
      std::optional<Outcome> end = OpenOne(vcpu, result);
      if (!end) continue;
      const auto* failed = std::get_if<VcpuFailed>(&*end);
      if (failed == nullptr) return *std::move(end);
      if (!options_.as_many_as_open) return Failed(failed->error, failed->advice);
      result.unopened.push_back({vcpu, failed->error, failed->advice});
    }
    if (absl::Status status = LeaveSpare(result); !status.ok()) return status;
    if (std::ranges::all_of(result.unopened, IsGone) && result.groups.empty()) {
      return absl::NotFoundError(
          absl::StrCat("VM ", vm_.name, " (PID ", vm_.pid, "): none of its vCPU threads is alive"));
    }
    result.absent = absent;
    return result;
  }

  static bool IsGone(const UnopenedVcpu& unopened) { return unopened.error == ESRCH; }

  // Closes vCPUs again, the last ones first, until kSpareDescriptors are free.
  absl::Status LeaveSpare(OpenedGroups& result) const {
    while (!result.groups.empty()) {
      const int error = WhyNoneToSpare();
      if (error == 0) break;
      const Vcpu& vcpu = result.vcpus.back();
      const std::string advice = Advise(vcpu, result.layout.front().events.front(), error);
      if (!options_.as_many_as_open) return Failed(error, advice);
      result.unopened.push_back({vcpu, error, advice});
      result.vcpus.pop_back();
      result.groups.pop_back();
      result.scheduling.pop_back();
    }
    std::ranges::sort(result.unopened, {},
                      [](const UnopenedVcpu& unopened) { return unopened.vcpu.index; });
    return absl::OkStatus();
  }

  // Nothing where the pass goes on: the vCPU has its groups in `result`, or is gone.
  std::optional<Outcome> OpenOne(const Vcpu& vcpu, OpenedGroups& result) {
    const auto gone = [&](int errno_value, const std::string& why) {
      result.unopened.push_back({vcpu, errno_value, why});
      return std::nullopt;
    };
    VcpuGroups groups;
    for (const GroupLayout& layout : result.layout) {
      std::vector<RefusedEvent> refused;
      OrErrno<CounterGroup> group = CounterGroup::Open(perf_, vcpu.tid, layout.events, refused);
      if (!group.ok() && MeansNoPmu(group.error) && core_pmus_.size() > 1 &&
          groups.size() < result.core_pmus) {
        return DropPmu(vcpu, layout, group.error);
      }
      const bool is_leader = !group.ok() && groups.empty();
      if (!group.ok()) refused = {{layout.events.front(), group.error}};
      if (!refused.empty() && refused.front().error == ESRCH) {
        return gone(ESRCH, Advise(vcpu, refused.front().event, ESRCH));
      }
      if (is_leader) return LeaderRefused(vcpu, refused.front());
      if (!refused.empty()) return SiblingRefused(vcpu, layout, refused.front());
      groups.push_back(std::move(group.value));
    }
    if (IsReused(vcpu)) return gone(ESRCH, "another thread has its TID now");
    OrErrno<ThreadScheduling> scheduling = ThreadScheduling::Open(root_, vm_.pid, vcpu.tid);
    if (!scheduling.ok()) {
      const Event& leader = result.layout.front().events.front();
      return VcpuFailed{scheduling.error, Advise(vcpu, leader, scheduling.error)};
    }
    result.scheduling.push_back(std::move(scheduling.value));
    result.vcpus.push_back(vcpu);
    result.groups.push_back(std::move(groups));
    return std::nullopt;
  }

  // Whether the TID stood for another thread by the time it was opened. The open groups keep the
  // thread that they found, so what is true after the opening stays true.
  bool IsReused(const Vcpu& vcpu) const {
    if (vcpu.start_time_ticks == 0) return false;  // never looked at
    const ProcTree tree(root_);
    const auto stat = tree.ThreadStat(vm_.pid, vcpu.tid);
    if (stat) return stat->start_time_ticks != vcpu.start_time_ticks;
    return !tree.HasThread(vm_.pid, vcpu.tid);
  }

  // A core PMU of a hybrid host that refuses cycles: the others count without it.
  Outcome DropPmu(const Vcpu& vcpu, const GroupLayout& layout, int errno_value) {
    absent.push_back({absl::StrCat(layout.events.front().name, " on ", layout.pmu), errno_value,
                      Advise(vcpu, layout.events.front(), errno_value)});
    std::erase_if(core_pmus_, [&layout](const Pmu& pmu) { return pmu.name == layout.pmu; });
    return EventAbsent{};
  }

  Outcome LeaderRefused(const Vcpu& vcpu, const RefusedEvent& refused) {
    const std::string advice = Advise(vcpu, refused.event, refused.error);
    if (!MeansNoPmu(refused.error)) return VcpuFailed{refused.error, advice};
    return NoPmu{refused.error, absl::StrCat(refused.event.name, ": ", advice)};
  }

  Outcome SiblingRefused(const Vcpu& vcpu, const GroupLayout& layout, const RefusedEvent& refused) {
    const std::string advice = Advise(vcpu, refused.event, refused.error);
    switch (refused.error) {
      case EINVAL:
        if (!OpensAlone(vcpu.tid, refused.event)) {
          absent.push_back({refused.event.name, EINVAL,
                            "the kernel refuses it as invalid even alone: this PMU does not "
                            "count guests apart, or has no such event"});
          return EventAbsent{};
        }
        return DoesNotFit{advice};
      case ENOENT:
      case ENODEV:
      case EOPNOTSUPP:
        // The leader opened, so there is a PMU: it has other events than this one.
        absent.push_back({refused.event.name, refused.error,
                          absl::StrCat("the PMU ", layout.pmu, layout.pmu.empty() ? "" : " ",
                                       "has no such event; `vcpulse list events` shows those "
                                       "it has")});
        return EventAbsent{};
      default:
        return VcpuFailed{refused.error, advice};
    }
  }

  bool OpensAlone(pid_t tid, const Event& event) {
    perf_event_attr attr = AttrOf(event, /*leader=*/true);
    return perf_.Open(attr, tid, /*group_fd=*/-1).ok();
  }

  absl::Status Failed(int errno_value, const std::string& advice) const {
    const std::string message = absl::StrCat("VM ", vm_.name, ": ", advice);
    return MeansShortage(errno_value)                      ? absl::ResourceExhaustedError(message)
           : errno_value == EACCES || errno_value == EPERM ? absl::PermissionDeniedError(message)
                                                           : absl::InternalError(message);
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
  const OpenOptions& options_;
  std::vector<Pmu> core_pmus_;  // those whose cycles open
};

absl::StatusOr<OpenedGroups> OpenDegraded(Attempt& attempt, const Vm& vm,
                                          const OpenOptions& options, const NoPmu& why) {
  if (options.require_counters) {
    return absl::FailedPreconditionError(absl::StrCat(
        "VM ", vm.name,
        ": no hardware counter can be read, and --require-counters is given: ", why.advice));
  }
  attempt.absent = options.wanted.events.absent;
  const std::vector<Rung> ladder = LadderOf(options.wanted);
  for (const Event& event : ladder.empty() ? std::vector<Event>() : EventsOf(ladder.front())) {
    if (event.host_side) continue;
    attempt.absent.push_back({event.name, why.error, why.advice});
  }
  Outcome outcome = attempt.RunDegraded(why.advice);
  while (std::holds_alternative<EventAbsent>(outcome)) outcome = attempt.RunDegraded(why.advice);
  if (auto* opened = std::get_if<OpenedGroups>(&outcome)) return std::move(*opened);
  if (const auto* status = std::get_if<absl::Status>(&outcome)) return *status;
  const auto* no_clock = std::get_if<NoPmu>(&outcome);
  return absl::FailedPreconditionError(
      absl::StrCat("VM ", vm.name, ": this kernel gives not even a software clock: ",
                   no_clock != nullptr ? no_clock->advice : std::get<DoesNotFit>(outcome).advice));
}

// The rung after one that did not fit: its events that are in no later rung are given up.
void GiveUp(const Rung& rung, const Rung& next, const std::string& reason,
            std::vector<AbsentEvent>& absent) {
  const std::vector<Event> kept = EventsOf(next);
  for (const Event& event : EventsOf(rung)) {
    const bool is_kept = std::ranges::find(kept, event.name, &Event::name) != kept.end();
    if (!is_kept && !IsAbsent(absent, event.name)) absent.push_back({event.name, EINVAL, reason});
  }
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
        "VM ", vm.name, " (PID ", vm.pid, "): ",
        vm.notes.empty() ? "no vCPU thread was found; `vcpulse list` says why" : vm.notes.front()));
  }
  Attempt attempt(perf, root, vm, options);
  const bool hybrid = options.core_pmus.size() > 1;
  const std::vector<Rung> ladder = LadderOf(options.wanted);
  if (ladder.empty()) {
    return OpenDegraded(attempt, vm, options, {.advice = "a degraded recording was asked for"});
  }
  if (!options.force_mediated_vpmu) {
    const std::string obstacle = MediatedVpmuObstacle(root);
    if (!obstacle.empty() && options.wanted.IsSoftwareOnly()) {
      return OpenDegraded(attempt, vm, options, {.advice = obstacle});
    }
    if (!obstacle.empty()) return absl::FailedPreconditionError(obstacle);
  }
  if (options.first_rung == 0) attempt.absent = options.wanted.events.absent;
  const std::string no_pause =
      hybrid ? "an event of one kind of core only: on a hybrid CPU every core PMU counts the same"
             : options.wanted.pause_distrust;
  if (options.first_rung == 0 && options.wanted.HasPause() && !no_pause.empty()) {
    attempt.absent.push_back({options.wanted.pause->name, 0, no_pause});
  }
  size_t rung = options.first_rung;
  while (true) {
    Outcome outcome = attempt.Run(ladder, rung);
    if (std::holds_alternative<EventAbsent>(outcome)) continue;
    if (auto* opened = std::get_if<OpenedGroups>(&outcome)) return std::move(*opened);
    if (const auto* status = std::get_if<absl::Status>(&outcome)) return *status;
    if (const auto* why = std::get_if<NoPmu>(&outcome)) {
      return OpenDegraded(attempt, vm, options, *why);
    }
    const std::string& advice = std::get<DoesNotFit>(outcome).advice;
    const bool is_last = rung + 1 == ladder.size();
    if (is_last && ladder[rung].multiplexed) {
      return absl::InvalidArgumentError(absl::StrCat(
          "VM ", vm.name, ": events in braces that this PMU cannot count together: ", advice));
    }
    if (is_last) return OpenDegraded(attempt, vm, options, {.advice = advice});
    GiveUp(ladder[rung], ladder[rung + 1], advice, attempt.absent);
    ++rung;
  }
}

}  // namespace vcpulse::kvm

#include "monitor/recorder/openings.h"

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/events/event_ladder.h"

namespace vcpulse::recorder {
namespace {

constexpr std::string_view kChangingOver =
    "descriptors are short: the counters before were closed first, so that these can be opened";

}  // namespace

std::string NameOf(const kvm::OpenedGroups& opened) {
  return opened.multiplexed ? absl::StrCat("groups of at most ", LargestGroup(opened.layout))
                            : absl::StrCat("event set ", opened.set);
}

kvm::OpenOptions Openings::OptionsFrom(const FirstRung& first) const {
  kvm::OpenOptions options = options_;
  options.first_rung = first.rung;
  options.given_up = first.given_up;
  return options;
}

absl::StatusOr<Openings::Next> Openings::Open(const kvm::Vm& vm, Before before) {
  kvm::OpenOptions options = OptionsFrom(first_);
  absl::StatusOr<kvm::OpenedGroups> opened = kvm::OpenGroups(perf_, root_, vm, options);
  if (!opened.ok()) {
    if (before == Before::kNewVm || absl::IsNotFound(opened.status())) return opened.status();
    if (absl::IsResourceExhausted(opened.status()) && before == Before::kCounting) {
      return Next{.groups = NothingOpened(vm, kChangingOver), .awaits_descriptors = true};
    }
    options.as_many_as_open = true;
    opened = kvm::OpenGroups(perf_, root_, vm, options);
    if (absl::IsNotFound(opened.status())) return opened.status();
    if (!opened.ok()) opened = NothingOpened(vm, std::string(opened.status().message()));
  }
  Next next{.notice = NoteLacking(vm, opened->unopened)};
  const bool still_nothing = opened->vcpus.empty() && before == Before::kUncovered;
  if (!still_nothing) next.groups = *std::move(opened);
  return next;
}

bool Openings::MoreOpen(const kvm::Vm& vm) const {
  if (lacking_.empty()) return false;
  kvm::OpenOptions options = OptionsFrom(first_);
  options.as_many_as_open = true;
  options.require_counters = options.require_counters || opened_.degraded_reason.empty();
  kvm::Vm rest = vm;
  rest.vcpus = lacking_;
  const absl::StatusOr<kvm::OpenedGroups> opened = kvm::OpenGroups(perf_, root_, rest, options);
  return opened.ok() && !opened->vcpus.empty();
}

kvm::OpenedGroups Openings::NothingOpened(const kvm::Vm& vm, std::string_view why) const {
  kvm::OpenedGroups none{.set = opened_.set,
                         .rung = opened_.rung,
                         .multiplexed = opened_.multiplexed,
                         .layout = opened_.layout,
                         .core_pmus = opened_.core_pmus,
                         .absent = opened_.absent,
                         .degraded_reason = opened_.degraded_reason};
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    none.unopened.push_back({vcpu, 0, std::string(why)});
  }
  return none;
}

std::string Openings::NoteLacking(const kvm::Vm& vm,
                                  const std::vector<kvm::UnopenedVcpu>& unopened) {
  lacking_.clear();
  std::string text;
  for (const kvm::UnopenedVcpu& vcpu : unopened) {
    if (vcpu.error == ESRCH) continue;  // gone: a rescan finds who came in its place
    lacking_.push_back(vcpu.vcpu);
    text = vcpu.reason;
  }
  if (!text.empty()) {
    text = absl::StrCat(lacking_.size(), " of ", vm.vcpus.size(),
                        " vCPUs are not counted, and tried again each second: ", text);
  }
  if (text == said_lacking_) return "";
  said_lacking_ = text;
  return text.empty() ? "all vCPUs are counted again" : text;
}

Openings::Step Openings::StepBelow(bool ran_before) const {
  const std::vector<kvm::Rung> ladder = kvm::LadderOf(options_.wanted);
  const std::vector<kvm::AbsentEvent>& absent = opened_.absent;
  const size_t next = NextDifferentRung(ladder, opened_.rung, LargestGroup(opened_.layout), absent);
  const std::string what = absl::StrCat("event set ", opened_.set,
                                        ran_before ? " no longer runs" : " opened but never ran");
  if (next == ladder.size()) {
    return {.to = std::nullopt,
            .detail = absl::StrCat(
                what,
                ", and there is no smaller one: somebody else "
                "holds all counters of the PMU; what the vCPUs do beside HALTED stays UNKNOWN")};
  }
  FirstRung to{.rung = next, .given_up = absent};
  const std::vector<kvm::Event> kept = kvm::EventsOf(ladder[next]);
  std::string lost;
  for (const kvm::Event& event : kvm::EventsOf(ladder[opened_.rung])) {
    const bool is_kept = std::ranges::find(kept, event.name, &kvm::Event::name) != kept.end();
    const bool is_absent =
        std::ranges::find(absent, event.name, &kvm::AbsentEvent::name) != absent.end();
    if (is_kept || is_absent) continue;
    to.given_up.push_back(
        {event.name, 0,
         ran_before ? "the group with it stopped running" : "the group with it never ran"});
    absl::StrAppend(&lost, lost.empty() ? "" : ", ", event.name);
  }
  return {
      .to = std::move(to),
      .detail = absl::StrCat(what,
                             " (too few free counters: NMI watchdog, a guest's own vPMU or another "
                             "profiler); stepped down to ",
                             ladder[next].multiplexed
                                 ? absl::StrCat("groups of at most ", ladder[next].largest_group)
                                 : ladder[next].name,
                             lost.empty() ? "" : ", without ", lost)};
}

bool Openings::SteppedDown(const FirstRung& from, int64_t now_ns) {
  steps_.push_back(from);
  climb_.SteppedDown(now_ns);
  return std::exchange(trying_, false);
}

std::optional<kvm::OpenedGroups> Openings::TryAbove(const kvm::Vm& vm, int64_t now_ns) {
  if (steps_.empty() || !climb_.IsDue(now_ns)) return std::nullopt;
  kvm::OpenOptions options = OptionsFrom(steps_.back());
  options.require_counters = true;  // the set that runs is better than none
  absl::StatusOr<kvm::OpenedGroups> opened = kvm::OpenGroups(perf_, root_, vm, options);
  climb_.Climbed(now_ns);
  if (opened.ok() && opened->rung < opened_.rung && opened->unopened.empty()) {
    return *std::move(opened);
  }
  climb_.SteppedDown(now_ns);
  return std::nullopt;
}

std::string Openings::Climbed(const kvm::Vm& vm) {
  first_ = std::move(steps_.back());
  steps_.pop_back();
  trying_ = true;
  return NoteLacking(vm, {});
}

}  // namespace vcpulse::recorder

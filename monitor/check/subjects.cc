#include "monitor/check/subjects.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"

namespace vcpulse::check {
namespace {

constexpr size_t kListed = 8;  // names or ranges in one message

using Indexes = std::set<uint32_t>;

std::string RangeText(const IndexRange& range) {
  return range.first == range.last ? absl::StrCat(range.first)
                                   : absl::StrCat(range.first, "-", range.last);
}

std::string RangesText(const std::vector<IndexRange>& ranges) {
  std::vector<std::string> texts;
  texts.reserve(ranges.size());
  for (const IndexRange& range : ranges) texts.push_back(RangeText(range));
  return Listed(texts, kListed);
}

std::vector<IndexRange> RangesOf(const Indexes& indexes) {
  std::vector<IndexRange> ranges;
  for (const uint32_t index : indexes) {
    if (!ranges.empty() && ranges.back().last + 1 == index) {
      ranges.back().last = index;
    } else {
      ranges.push_back({.first = index, .last = index});
    }
  }
  return ranges;
}

bool Holds(const std::vector<IndexRange>& ranges, uint32_t index) {
  return std::ranges::any_of(
      ranges, [index](const IndexRange& r) { return r.first <= index && index <= r.last; });
}

// What of `ranges` is not in `indexes`. A range may be of all numbers there are: it is not counted
// through.
std::vector<IndexRange> Without(const std::vector<IndexRange>& ranges, const Indexes& indexes) {
  std::vector<IndexRange> rest;
  for (const IndexRange& range : ranges) {
    uint64_t from = range.first;
    for (auto i = indexes.lower_bound(range.first); i != indexes.end() && *i <= range.last; ++i) {
      if (from < *i) rest.push_back({static_cast<uint32_t>(from), *i - 1});
      from = uint64_t{*i} + 1;
    }
    if (from <= range.last) rest.push_back({static_cast<uint32_t>(from), range.last});
  }
  return rest;
}

Indexes VcpusOf(const Vm& vm) {
  Indexes all;
  for (const auto& [number, epoch] : vm.epochs) {
    all.insert(epoch.vcpus.begin(), epoch.vcpus.end());
    for (const Epoch::Unopened& vcpu : epoch.unopened) all.insert(vcpu.index);
  }
  return all;
}

// Those that a selector may mean.
struct Matching {
  std::vector<uint32_t> vms;  // numbers
  std::vector<const SkippedVm*> skipped;

  bool IsEmpty() const { return vms.empty() && skipped.empty(); }
};

template <typename Fits>
Matching MatchingBy(const Timetable& timetable, const Fits& fits) {
  Matching matching;
  for (const auto& [number, vm] : timetable.vms()) {
    if (fits(vm.instance)) matching.vms.push_back(number);
  }
  for (const SkippedVm& vm : timetable.skipped()) {
    if (fits(vm.instance)) matching.skipped.push_back(&vm);
  }
  return matching;
}

// VMs by name; where none is called so, by UUID; else by PID; else by number, as reports have it.
Matching MatchingVms(const Timetable& timetable, const std::optional<std::string>& wanted) {
  using Instance = v1::VmInstance;
  if (!wanted) return MatchingBy(timetable, [](const Instance&) { return true; });
  Matching by_name =
      MatchingBy(timetable, [&](const Instance& vm) { return vm.name() == *wanted; });
  if (!by_name.IsEmpty()) return by_name;
  Matching by_uuid = MatchingBy(
      timetable, [&](const Instance& vm) { return absl::EqualsIgnoreCase(vm.uuid(), *wanted); });
  if (!by_uuid.IsEmpty()) return by_uuid;
  Matching by_pid =
      MatchingBy(timetable, [&](const Instance& vm) { return absl::StrCat(vm.pid()) == *wanted; });
  if (!by_pid.IsEmpty()) return by_pid;
  Matching by_number;
  for (const auto& [number, vm] : timetable.vms()) {
    if (absl::StrCat(number) == *wanted) by_number.vms.push_back(number);
  }
  return by_number;
}

// What a VM is called, for people.
std::string LabelOf(const Timetable& timetable, const v1::VmInstance& instance) {
  if (instance.name().empty()) return absl::StrCat("pid-", instance.pid());
  const auto is_namesake = [&instance](const v1::VmInstance& other) {
    return other.name() == instance.name() && other.pid() != instance.pid();
  };
  const Matching namesakes = MatchingBy(timetable, is_namesake);
  const std::string name = Printable(instance.name());
  return namesakes.IsEmpty() ? name : absl::StrCat(name, " (PID ", instance.pid(), ")");
}

class Selecting {
 public:
  Selecting(const Timetable& timetable, const std::vector<TimeRange>& spans,
            const Selector& selector)
      : timetable_(timetable), spans_(spans), selector_(selector) {}

  Selection Run(bool of_vms);

 private:
  void TakeVm(uint32_t number);
  void TakeVcpus(uint32_t number);
  void ComplainOfSkipped(const std::vector<const SkippedVm*>& skipped);
  void ComplainOfVcpus(const std::vector<uint32_t>& vms);
  std::string NoneOfVms(const std::vector<uint32_t>& vms) const;
  std::string NoSuchVm() const;
  // What the epochs in the judged time say of a subject.
  void Describe(Subject& subject) const;

  const Timetable& timetable_;
  const std::vector<TimeRange>& spans_;
  const Selector& selector_;
  Selection selection_;
  Indexes known_;  // of all selected VMs
  Indexes there_;  // thereof those in the judged time
};

Selection Selecting::Run(bool of_vms) {
  const Matching matching = MatchingVms(timetable_, selector_.vm);
  const std::vector<uint32_t>& vms = selection_.vms = matching.vms;
  for (const uint32_t vm : vms) of_vms ? TakeVm(vm) : TakeVcpus(vm);
  ComplainOfSkipped(matching.skipped);
  if (!of_vms && !selector_.vcpus.empty() && !vms.empty()) {
    ComplainOfVcpus(vms);
  } else if (selection_.subjects.empty() && selection_.missing.empty()) {
    selection_.missing.push_back(vms.empty() ? NoSuchVm() : NoneOfVms(vms));
  }
  return std::move(selection_);
}

void Selecting::TakeVm(uint32_t number) {
  if (Common(spans_, timetable_.SampledWindows(number)).empty()) return;
  const std::string label = LabelOf(timetable_, number);
  Subject subject{.vm = number,
                  .vm_name = timetable_.vms().at(number).instance.name(),
                  .label = absl::StrCat("VM ", label)};
  Describe(subject);
  selection_.subjects.push_back(std::move(subject));
}

void Selecting::TakeVcpus(uint32_t number) {
  const Vm& vm = timetable_.vms().at(number);
  const std::string label = LabelOf(timetable_, number);
  for (const uint32_t index : VcpusOf(vm)) {
    known_.insert(index);
    if (!selector_.vcpus.empty() && !Holds(selector_.vcpus, index)) continue;
    if (Common(spans_, timetable_.VcpuWindows(number, index)).empty()) continue;
    there_.insert(index);
    Subject subject{.vm = number,
                    .vcpu = index,
                    .vm_name = vm.instance.name(),
                    .label = absl::StrCat("VM ", label, " vCPU ", index)};
    Describe(subject);
    selection_.subjects.push_back(std::move(subject));
  }
}

void Selecting::Describe(Subject& subject) const {
  bool counted = false;
  bool degraded = false;
  for (const auto& [number, epoch] : timetable_.vms().at(subject.vm).epochs) {
    const std::vector<TimeRange> window = Joined({timetable_.WindowOf(epoch)});
    if (Common(spans_, window).empty()) continue;
    if (!subject.vcpu) {
      if (!epoch.unopened.empty()) {
        const Epoch::Unopened& vcpu = epoch.unopened.front();
        subject.unopened = absl::StrCat("vCPU ", vcpu.index, ": ", vcpu.reason);
      }
      continue;
    }
    const auto unopened = std::ranges::find(epoch.unopened, *subject.vcpu, &Epoch::Unopened::index);
    if (unopened != epoch.unopened.end()) subject.unopened = unopened->reason;
    const bool opened = std::ranges::find(epoch.vcpus, *subject.vcpu) != epoch.vcpus.end();
    if (opened || unopened != epoch.unopened.end()) (epoch.degraded ? degraded : counted) = true;
  }
  subject.degraded = degraded && !counted;
}

void Selecting::ComplainOfVcpus(const std::vector<uint32_t>& vms) {
  const std::string whose =
      vms.size() == 1 ? absl::StrCat("VM ", LabelOf(timetable_, vms.front())) : "none of the VMs";
  if (const std::string unknown = NotAmong(selector_.vcpus, known_); !unknown.empty()) {
    selection_.missing.push_back(
        vms.size() == 1
            ? absl::StrCat(whose, " has vCPUs ", RangesText(RangesOf(known_)), ", no ", unknown)
            : absl::StrCat(whose, " has a vCPU ", unknown, "; there are vCPUs ",
                           RangesText(RangesOf(known_))));
  }
  Indexes absent;
  for (const uint32_t index : known_) {
    if (Holds(selector_.vcpus, index) && !there_.contains(index)) absent.insert(index);
  }
  if (absent.empty()) return;
  selection_.missing.push_back(absl::StrCat("vCPU ", RangesText(RangesOf(absent)),
                                            " was not there in the time that was judged"));
}

// A VM that ran and was not recorded may have done anything, on any vCPU.
void Selecting::ComplainOfSkipped(const std::vector<const SkippedVm*>& skipped) {
  const int64_t start_ns = timetable_.Recording().from_ns;
  const auto text = [start_ns](int64_t instant_ns) {
    return absl::StrFormat("%.1f s", ToSeconds(instant_ns - start_ns));
  };
  size_t more = 0;
  for (const SkippedVm* vm : skipped) {
    if (Common(spans_, Joined({timetable_.WindowOf(*vm)})).empty()) continue;
    selection_.skipped.push_back(vm->instance.name());
    if (selection_.missing.size() >= kListed) {
      ++more;
      continue;
    }
    selection_.missing.push_back(absl::StrCat(
        "VM ", LabelOf(timetable_, vm->instance), " was not recorded from ", text(vm->from_ns),
        vm->to_ns ? absl::StrCat(" to ", text(*vm->to_ns)) : " on", ": ", Printable(vm->reason)));
  }
  if (more > 0) selection_.missing.push_back(absl::StrCat(Plural(more, "more VM"), " likewise"));
}

std::string Selecting::NoneOfVms(const std::vector<uint32_t>& vms) const {
  std::vector<std::string> names;
  names.reserve(vms.size());
  for (const uint32_t vm : vms) names.push_back(LabelOf(timetable_, vm));
  return absl::StrCat("no vCPU of VM ", Listed(names, kListed),
                      " was there to be sampled in the time that was judged");
}

std::string Selecting::NoSuchVm() const {
  std::vector<std::string> names;
  for (const auto& [number, vm] : timetable_.vms()) names.push_back(LabelOf(timetable_, number));
  if (names.empty()) return "no VM was recorded";
  return absl::StrCat("no VM is called '", Printable(selector_.vm.value_or("")),
                      "'; VMs are: ", Listed(names, kListed));
}

}  // namespace

Selection Select(const Timetable& timetable, const std::vector<TimeRange>& spans,
                 const Selector& selector, bool of_vms) {
  return Selecting(timetable, spans, selector).Run(of_vms);
}

std::string NotAmong(const std::vector<IndexRange>& ranges, const std::set<uint32_t>& indexes) {
  const std::vector<IndexRange> rest = Without(ranges, indexes);
  return rest.empty() ? "" : RangesText(rest);
}

std::string ToString(const Selector& selector, bool of_vms) {
  std::vector<std::string> parts;
  if (selector.vm) parts.push_back(absl::StrCat("vm=", Printable(*selector.vm)));
  if (!selector.vcpus.empty()) {
    std::vector<std::string> ranges;
    ranges.reserve(selector.vcpus.size());
    for (const IndexRange& range : selector.vcpus) ranges.push_back(RangeText(range));
    parts.push_back(absl::StrCat("vcpu=", absl::StrJoin(ranges, ",")));
  }
  if (parts.empty()) return of_vms ? "vm=*" : "vcpu=*";
  return absl::StrJoin(parts, " ");
}

std::string LabelOf(const Timetable& timetable, uint32_t vm) {
  return LabelOf(timetable, timetable.vms().at(vm).instance);
}

std::string DegradedText(const Timetable& timetable) {
  std::vector<std::string> degraded;
  for (const auto& [number, vm] : timetable.vms()) {
    const auto has_no_counter = [](const auto& entry) { return entry.second.degraded; };
    if (!vm.epochs.empty() && std::ranges::all_of(vm.epochs, has_no_counter)) {
      degraded.push_back(LabelOf(timetable, number));
    }
  }
  const auto& session = timetable.session();
  return reading::DegradedText(degraded, timetable.vms().size(),
                               session ? session->degraded_reason() : "");
}

}  // namespace vcpulse::check

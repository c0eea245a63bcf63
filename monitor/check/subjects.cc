#include "monitor/check/subjects.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"

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

// VMs by name; where none is called so, by UUID; else by PID.
std::vector<uint32_t> MatchingVms(const Timetable& timetable,
                                  const std::optional<std::string>& wanted) {
  std::vector<uint32_t> by_name;
  std::vector<uint32_t> by_uuid;
  std::vector<uint32_t> by_pid;
  for (const auto& [number, vm] : timetable.vms()) {
    if (!wanted || vm.instance.name() == *wanted) by_name.push_back(number);
    if (wanted && absl::EqualsIgnoreCase(vm.instance.uuid(), *wanted)) by_uuid.push_back(number);
    if (wanted && absl::StrCat(vm.instance.pid()) == *wanted) by_pid.push_back(number);
  }
  if (!by_name.empty()) return by_name;
  return by_uuid.empty() ? by_pid : by_uuid;
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
  void ComplainOfVcpus(const std::vector<uint32_t>& vms);
  void ComplainOfVms(const std::vector<uint32_t>& vms);
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
  const std::vector<uint32_t> vms = MatchingVms(timetable_, selector_.vm);
  if (vms.empty()) {
    selection_.missing.push_back(NoSuchVm());
    return std::move(selection_);
  }
  selection_.vms = vms;
  for (const uint32_t vm : vms) of_vms ? TakeVm(vm) : TakeVcpus(vm);
  if (!of_vms && !selector_.vcpus.empty()) {
    ComplainOfVcpus(vms);
  } else if (selection_.subjects.empty()) {
    ComplainOfVms(vms);
  }
  return std::move(selection_);
}

void Selecting::TakeVm(uint32_t number) {
  if (Common(spans_, timetable_.SampledWindows(number)).empty()) return;
  const std::string label = LabelOf(timetable_, number);
  selection_.subjects.push_back({.vm = number,
                                 .vm_name = timetable_.vms().at(number).instance.name(),
                                 .label = absl::StrCat("VM ", label)});
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
  if (const auto unknown = Without(selector_.vcpus, known_); !unknown.empty()) {
    selection_.missing.push_back(
        vms.size() == 1 ? absl::StrCat(whose, " has vCPUs ", RangesText(RangesOf(known_)), ", no ",
                                       RangesText(unknown))
                        : absl::StrCat(whose, " has a vCPU ", RangesText(unknown),
                                       "; there are vCPUs ", RangesText(RangesOf(known_))));
  }
  Indexes absent;
  for (const uint32_t index : known_) {
    if (Holds(selector_.vcpus, index) && !there_.contains(index)) absent.insert(index);
  }
  if (absent.empty()) return;
  selection_.missing.push_back(absl::StrCat("vCPU ", RangesText(RangesOf(absent)),
                                            " was not there in the time that was judged"));
}

void Selecting::ComplainOfVms(const std::vector<uint32_t>& vms) {
  std::vector<std::string> names;
  names.reserve(vms.size());
  for (const uint32_t vm : vms) names.push_back(LabelOf(timetable_, vm));
  selection_.missing.push_back(
      absl::StrCat("no vCPU of VM ", Listed(names, kListed),
                   " was there to be sampled in the time that was judged"));
}

std::string Selecting::NoSuchVm() const {
  std::vector<std::string> names;
  for (const auto& [number, vm] : timetable_.vms()) names.push_back(LabelOf(timetable_, number));
  if (names.empty()) return "no VM was recorded";
  return absl::StrCat("no VM is called '", Printable(selector_.vm.value_or("")),
                      "'; there are: ", Listed(names, kListed));
}

}  // namespace

Selection Select(const Timetable& timetable, const std::vector<TimeRange>& spans,
                 const Selector& selector, bool of_vms) {
  return Selecting(timetable, spans, selector).Run(of_vms);
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
  const v1::VmInstance& instance = timetable.vms().at(vm).instance;
  if (instance.name().empty()) return absl::StrCat("pid-", instance.pid());
  const auto namesakes = std::ranges::count_if(timetable.vms(), [&instance](const auto& other) {
    return other.second.instance.name() == instance.name();
  });
  const std::string name = Printable(instance.name());
  return namesakes > 1 ? absl::StrCat(name, " (PID ", instance.pid(), ")") : name;
}

}  // namespace vcpulse::check

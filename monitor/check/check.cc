#include "monitor/check/check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/examination.h"
#include "monitor/check/questions.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

constexpr double kContention = 0.10;  // waiting for a CPU beyond this share of the time is told
constexpr size_t kListed = 8;

Result Describe(Examination& examination, const CheckOptions& options) {
  const Timetable& timetable = examination.timetable();
  Result result;
  static_cast<JudgedTime&>(result) = examination.ScopeOf(options.phase).time;
  if (timetable.session()) result.host_name = timetable.session()->host_name();
  result.start_realtime_ns = timetable.StartRealtimeNs();
  result.duration_ns = timetable.Recording().Length();
  result.baseline = options.baseline;
  result.degraded = DegradedText(timetable);
  result.phases = timetable.Phases();
  return result;
}

// Of a VM that ended before the judged time did, nothing where it did not.
std::optional<std::string> EndNote(const Timetable& timetable, const std::vector<TimeRange>& spans,
                                   uint32_t vm) {
  const std::optional<int64_t> ended_ns = timetable.vms().at(vm).ended_ns;
  if (!ended_ns || spans.empty() || *ended_ns >= spans.back().to_ns) return std::nullopt;
  const std::string whose = "VM " + LabelOf(timetable, vm);
  if (*ended_ns <= spans.front().from_ns) {
    return whose + " had ended before the judged time, it is not judged";
  }
  const bool within = timetable.GoneWithin(vm, spans).has_value();
  const int64_t after_ns = *ended_ns - timetable.Recording().from_ns;
  return absl::StrCat(whose, " ended ", report::DurationText(static_cast<double>(after_ns)),
                      " after the recording's start, ",
                      within ? "within the judged time" : "before the last span");
}

// What makes numbers of one phase doubtful.
std::vector<std::string> NotesOf(const Timetable& timetable, const Scope& scope,
                                 const std::set<uint32_t>& vms) {
  std::vector<std::string> notes;
  const int64_t paused_ns = TotalLength(Common(scope.spans, timetable.Pauses()));
  if (paused_ns > 0) {
    notes.push_back(absl::StrCat("the recording was paused for ",
                                 report::DurationText(static_cast<double>(paused_ns)), " of it"));
  }
  for (const uint32_t vm : vms) {
    if (auto note = EndNote(timetable, scope.spans, vm)) notes.push_back(*std::move(note));
  }
  std::vector<std::string> waited;
  for (const Waited& vcpu : scope.judging.WaitedMoreThan(kContention)) {
    waited.push_back(absl::StrFormat("VM %s vCPU %d %.1f %%", LabelOf(timetable, vcpu.vm),
                                     vcpu.vcpu, vcpu.share * 100));
  }
  if (!waited.empty()) {
    notes.push_back(absl::StrCat("the host was short of CPUs; of the judged time waited for one: ",
                                 Listed(waited, kListed)));
  }
  return notes;
}

// Those of all phases that something is asked of; `whose` stands before each.
void AddNotes(const Examination& examination, const std::vector<Asked>& asked,
              const std::string& whose, std::vector<std::string>& notes) {
  const auto add = [&](const std::string& note) { notes.push_back(whose + note); };
  std::map<const Scope*, std::set<uint32_t>> vms;
  for (const Asked& one : asked) {
    if (one.scope == nullptr) continue;
    vms[one.scope].insert(one.selection.vms.begin(), one.selection.vms.end());
  }
  // The same of all that were read for.
  const uint64_t unattributed = vms.empty() ? 0 : vms.begin()->first->judging.unattributed_ticks();
  const std::string loss =
      report::DescribeLoss(examination.read(), unattributed, examination.read().ended_in_order);
  if (!loss.empty()) add(loss);
  for (const auto& [phase, scope] : examination.scopes()) {
    const auto selected = vms.find(scope.get());
    if (selected == vms.end()) continue;
    std::string where;
    if (vms.size() > 1) where = phase ? "phase " + Printable(*phase) + ": " : "whole recording: ";
    for (const std::string& note : NotesOf(examination.timetable(), *scope, selected->second)) {
      add(where + note);
    }
  }
}

bool IsQuantity(const Quantity& quantity) {
  switch (quantity.kind) {
    case Quantity::Kind::kLongest:
      return quantity.metric <= Metric::kStarved;
    case Quantity::Kind::kPercentile:
      return quantity.percentile >= 1 && quantity.percentile <= 99;
    case Quantity::Kind::kHot:
      return !quantity.functions.empty();
    case Quantity::Kind::kMean:
    case Quantity::Kind::kGaps:
      break;
  }
  return true;
}

}  // namespace

absl::StatusOr<Result> CheckTimeline(const std::string& path,
                                     std::span<const Expectation> expectations,
                                     const CheckOptions& options) {
  const auto uses_baseline = std::ranges::find_if(expectations, &Expectation::UsesBaseline);
  const bool has_baseline = uses_baseline != expectations.end();
  if (has_baseline && !options.baseline) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(uses_baseline->text), " needs a baseline timeline, and none is given"));
  }
  Questions baseline(expectations, options);
  if (has_baseline) {
    const absl::Status status = baseline.Read(*options.baseline, nullptr, true);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--baseline: ", status.message()));
    }
  }
  Questions questions(expectations, options);
  if (auto status = questions.Read(path, &baseline, false); !status.ok()) return status;

  Result result = Describe(questions.examination(), options);
  AddNotes(questions.examination(), questions.asked(), "", result.notes);
  if (has_baseline) {
    AddNotes(baseline.examination(), baseline.asked(), "baseline: ", result.notes);
  }
  for (size_t i = 0; i < expectations.size(); ++i) {
    result.judged.push_back(questions.Judge(i, &baseline));
  }
  result.outcome = WorstOf(result.judged, options.allow_skip);
  return result;
}

absl::StatusOr<Measurement> Measure(const std::string& path, const Selector& selector,
                                    const Quantity& quantity, const CheckOptions& options) {
  if (!IsQuantity(quantity)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no ", ToString(quantity), " to measure"));
  }
  const auto examination = Examination::Open(path, options.skip_first_ns);
  if (!examination.ok()) return examination.status();
  const Asked asked = (*examination)->Ask(options.phase, selector, quantity.IsOfVms());
  const Selection& selection = asked.selection;
  if (!selection.missing.empty()) return absl::NotFoundError(selection.missing.front());
  if (selection.subjects.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(selector, quantity.IsOfVms()), " fits ", selection.subjects.size(),
        " of them: ", selection.subjects[0].label, ", ", selection.subjects[1].label, "..."));
  }
  const Subject& subject = selection.subjects.front();
  if (subject.degraded && quantity.NeedsCounters()) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(quantity), " needs hardware counters, and none was read"));
  }
  if (quantity.kind == Quantity::Kind::kHot) {
    asked.scope->judging.WatchBy(
        subject, NewHotTally(quantity, options.symbols.Of(subject.vm_name).symbols));
  } else {
    asked.scope->judging.Watch(subject, quantity, std::nullopt);
  }
  if (auto status = (*examination)->ReadTicks(); !status.ok()) return status;
  const Watched& watched = asked.scope->answers.front();
  if (watched.support.ticks == 0 && subject.unopened) {
    return absl::FailedPreconditionError(
        absl::StrCat(subject.label, " could not be opened: ", *subject.unopened));
  }
  return Measurement{.subject = subject.label,
                     .observed = watched.tallied.observed,
                     .ticks = watched.support.ticks,
                     .judged_ns = watched.support.judged_ns,
                     .unknown_ns = watched.tallied.unknown_ns};
}

}  // namespace vcpulse::check

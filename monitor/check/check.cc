#include "monitor/check/check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/examination.h"
#include "monitor/check/quantifier.h"
#include "monitor/check/words.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

constexpr double kContention = 0.10;  // waiting for a CPU beyond this share of the time is told
constexpr size_t kListed = 8;

bool IsOfVms(const Quantity& quantity) { return quantity.kind == Quantity::Kind::kGaps; }

Result Describe(Examination& examination, const CheckOptions& options) {
  const Timetable& timetable = examination.timetable();
  Result result;
  static_cast<JudgedTime&>(result) = examination.ScopeOf(options.phase).time;
  if (timetable.session()) result.host_name = timetable.session()->host_name();
  result.start_realtime_ns = timetable.StartRealtimeNs();
  result.duration_ns = timetable.Recording().Length();
  result.baseline = options.baseline;
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

// Expectations as they are asked of one timeline: the file, or its baseline.
class Questions {
 public:
  Questions(std::span<const Expectation> expectations, const CheckOptions& options)
      : expectations_(expectations), options_(options), asked_(expectations.size()) {}

  // Reads `path`. Where `of_baseline`, only what expectations that use one need.
  absl::Status Read(const std::string& path, const Questions* baseline, bool of_baseline);

  Examination& examination() const { return *examination_; }
  const std::vector<Asked>& asked() const { return asked_; }

  Judged Judge(size_t i, const Questions* baseline) const;

 private:
  // What was observed of some subject, and why that is not enough.
  struct Known {
    std::optional<Bounds> observed;
    std::string why_not;
  };

  Quantity QuantityOf(const Expectation& expectation) const;
  // The question, where `known` is what the baseline says.
  Question QuestionOf(const Expectation& expectation, const Known& known) const;
  Finding FindingOf(size_t i, size_t subject, const Question& question) const;
  Finding SumFinding(size_t i, const Question& question) const;
  // For the baseline: the value of those that correspond to `subject` of `of`; null: of a sum.
  Known ValueOf(size_t i, const Subject* subject, const Asked* of) const;
  std::string WhomOf(size_t i) const;

  std::span<const Expectation> expectations_;
  const CheckOptions& options_;
  std::unique_ptr<Examination> examination_;
  std::vector<Asked> asked_;  // by expectation; without a scope where nothing is asked
};

Quantity Questions::QuantityOf(const Expectation& expectation) const {
  Quantity quantity = expectation.quantity;
  if (options_.trust_ipc_bands && quantity.IsOfIpcBands()) quantity.by_ipc_bands = true;
  return quantity;
}

// 0.7 + 0.1 shall be 0.8.
double Rounded(double value) {
  double rounded = value;
  return absl::SimpleAtod(absl::StrFormat("%.12g", value), &rounded) ? rounded : value;
}

Question Questions::QuestionOf(const Expectation& expectation, const Known& known) const {
  Question question{.quantity = expectation.quantity,
                    .comparison = expectation.comparison,
                    .limit = Bounds{.low = expectation.limit, .high = expectation.limit},
                    .min_ticks = options_.min_ticks,
                    .min_measured = options_.min_measured};
  if (!expectation.UsesBaseline()) return question;
  question.wanted = BaselineText(expectation);
  question.no_limit = absl::StrCat("baseline: ", known.why_not);
  question.limit = known.observed;
  const bool as_it_is = expectation.baseline_factor == 1 && expectation.limit == 0;
  if (!question.limit || as_it_is) return question;
  for (double* end : {&question.limit->low, &question.limit->high}) {
    *end = Rounded(*end * expectation.baseline_factor + expectation.limit);
  }
  return question;
}

absl::Status Questions::Read(const std::string& path, const Questions* baseline, bool of_baseline) {
  auto examination = Examination::Open(path, options_.skip_first_ns);
  if (!examination.ok()) return examination.status();
  examination_ = *std::move(examination);
  for (size_t i = 0; i < expectations_.size(); ++i) {
    const Expectation& expectation = expectations_[i];
    if (of_baseline && !expectation.UsesBaseline()) continue;
    asked_[i] = examination_->Ask(expectation.phase ? expectation.phase : options_.phase,
                                  expectation.selector, IsOfVms(expectation.quantity));
    for (const Subject& subject : asked_[i].selection.subjects) {
      std::optional<Limit> limit;
      if (!of_baseline && expectation.quantifier != Quantifier::kSum) {
        Known known;
        if (expectation.UsesBaseline()) known = baseline->ValueOf(i, &subject, &asked_[i]);
        const std::optional<Bounds> bounds = QuestionOf(expectation, known).limit;
        if (bounds) limit = Limit{.comparison = expectation.comparison};
        if (bounds && bounds->low == bounds->high) limit->value = bounds->low;
      }
      asked_[i].places.push_back(
          asked_[i].scope->judging.Watch(subject, QuantityOf(expectation), limit));
    }
  }
  return examination_->ReadTicks();
}

std::string Questions::WhomOf(size_t i) const {
  const Expectation& expectation = expectations_[i];
  std::string whom = ToString(expectation.selector, IsOfVms(expectation.quantity));
  if (expectation.quantifier == Quantifier::kEach) return whom;
  return absl::StrCat(ToAbsl(ToString(expectation.quantifier)), " ", whom);
}

Finding Questions::FindingOf(size_t i, size_t subject, const Question& question) const {
  const Timetable& timetable = examination_->timetable();
  const auto& session = timetable.session();
  const Asked& asked = asked_[i];
  return MakeFinding(question, asked.selection.subjects[subject],
                     asked.scope->answers[asked.places[subject]], timetable.Recording().from_ns,
                     session ? session->degraded_reason() : "");
}

Finding Questions::SumFinding(size_t i, const Question& question) const {
  Question each = question;
  each.limit.reset();
  each.no_limit.clear();
  const Selection& selection = asked_[i].selection;
  std::vector<Finding> findings;
  findings.reserve(selection.subjects.size());
  for (size_t s = 0; s < selection.subjects.size(); ++s) {
    findings.push_back(FindingOf(i, s, each));
  }
  return SumOf(question, WhomOf(i), findings, selection.missing,
               asked_[i].scope->judging.TimeOfAny(selection.subjects));
}

Questions::Known Questions::ValueOf(size_t i, const Subject* subject, const Asked* of) const {
  const Asked& asked = asked_[i];
  if (asked.scope->no_pass) return {.observed = {}, .why_not = *asked.scope->no_pass};
  Question question = QuestionOf(expectations_[i], {});
  question.no_limit.clear();
  const auto known = [](const Finding& finding) {
    if (!finding.reason.empty()) return Known{.observed = {}, .why_not = finding.reason};
    return Known{.observed = finding.observed, .why_not = ""};
  };
  if (subject == nullptr) return known(SumFinding(i, question));
  const Selection& selection = asked.selection;
  const auto corresponds = [&](const Subject& other, bool by_name) {
    return other.vcpu == subject->vcpu && (!by_name || other.vm_name == subject->vm_name);
  };
  const bool by_name = of->selection.vms.size() > 1 || selection.vms.size() > 1 ||
                       std::ranges::any_of(selection.subjects, [&](const Subject& other) {
                         return corresponds(other, true);
                       });
  Known all;
  for (size_t s = 0; s < selection.subjects.size(); ++s) {
    if (!corresponds(selection.subjects[s], by_name)) continue;
    const Known one = known(FindingOf(i, s, question));
    if (!one.observed) return one;
    if (!all.observed) all.observed = one.observed;
    all.observed->low = std::min(all.observed->low, one.observed->low);
    all.observed->high = std::max(all.observed->high, one.observed->high);
  }
  if (!all.observed) {
    all.why_not = selection.missing.empty() ? absl::StrCat("no ", subject->label, " was recorded")
                                            : selection.missing.front();
  }
  return all;
}

Judged Questions::Judge(size_t i, const Questions* baseline) const {
  const Expectation& expectation = expectations_[i];
  const Asked& asked = asked_[i];
  const auto question = [&](const Subject* subject) {
    Known known;
    if (expectation.UsesBaseline()) known = baseline->ValueOf(i, subject, &asked);
    return QuestionOf(expectation, known);
  };
  std::vector<Finding> findings;
  if (expectation.quantifier == Quantifier::kSum) {
    findings.push_back(SumFinding(i, question(nullptr)));
  } else {
    for (size_t s = 0; s < asked.selection.subjects.size(); ++s) {
      findings.push_back(FindingOf(i, s, question(&asked.selection.subjects[s])));
    }
    for (const std::string& reason : asked.selection.missing) {
      findings.push_back(
          MissingSubject(ToString(expectation.selector, IsOfVms(expectation.quantity)), reason));
    }
  }
  if (expectation.quantifier == Quantifier::kAny) {
    findings = {AnyOf(expectation, WhomOf(i), findings)};
  }
  for (Finding& finding : findings) {
    if (finding.outcome != Outcome::kPass || !asked.scope->no_pass) continue;
    finding.outcome = Outcome::kInconclusive;
    finding.reason = *asked.scope->no_pass;
  }
  Judged judged{.expectation = expectation};
  judged.outcome = WorstOf(findings, options_.allow_skip);
  judged.findings = std::move(findings);
  if (expectation.phase) judged.time = asked.scope->time;
  return judged;
}

bool IsQuantity(const Quantity& quantity) {
  switch (quantity.kind) {
    case Quantity::Kind::kLongest:
      return quantity.metric <= Metric::kStarved;
    case Quantity::Kind::kPercentile:
      return quantity.percentile >= 1 && quantity.percentile <= 99;
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
  const Asked asked = (*examination)->Ask(options.phase, selector, IsOfVms(quantity));
  const Selection& selection = asked.selection;
  if (!selection.missing.empty()) return absl::NotFoundError(selection.missing.front());
  if (selection.subjects.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        ToString(selector, IsOfVms(quantity)), " fits ", selection.subjects.size(),
        " of them: ", selection.subjects[0].label, ", ", selection.subjects[1].label, "..."));
  }
  const Subject& subject = selection.subjects.front();
  if (subject.degraded && quantity.NeedsCounters()) {
    return absl::FailedPreconditionError(
        absl::StrCat(ToString(quantity), " needs hardware counters, and none was read"));
  }
  asked.scope->judging.Watch(subject, quantity, std::nullopt);
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

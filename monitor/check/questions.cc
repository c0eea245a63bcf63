#include "monitor/check/questions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/quantifier.h"
#include "monitor/check/words.h"

namespace vcpulse::check {
namespace {

// 0.7 + 0.1 shall be 0.8.
double Rounded(double value) {
  double rounded = value;
  return absl::SimpleAtod(absl::StrFormat("%.12g", value), &rounded) ? rounded : value;
}

}  // namespace

std::unique_ptr<Tally> Questions::TallyOf(const Quantity& quantity, const Subject& subject,
                                          const std::optional<Limit>& limit) const {
  if (quantity.kind != Quantity::Kind::kHot) return NewTally(quantity, limit);
  return NewHotTally(quantity, options_.symbols.Of(subject.vm_name).symbols);
}

Quantity Questions::QuantityOf(const Expectation& expectation) const {
  Quantity quantity = expectation.quantity;
  if (options_.trust_ipc_bands && quantity.IsOfIpcBands()) quantity.by_ipc_bands = true;
  return quantity;
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
                                  expectation.selector, expectation.quantity.IsOfVms());
    for (const Subject& subject : asked_[i].selection.subjects) {
      std::optional<Limit> limit;
      if (!of_baseline && expectation.quantifier != Quantifier::kSum) {
        Known known;
        if (expectation.UsesBaseline()) known = baseline->ValueOf(i, &subject, &asked_[i]);
        const std::optional<Bounds> bounds = QuestionOf(expectation, known).limit;
        if (bounds) limit = Limit{.comparison = expectation.comparison};
        if (bounds && bounds->low == bounds->high) limit->value = bounds->low;
      }
      asked_[i].places.push_back(asked_[i].scope->judging.WatchBy(
          subject, TallyOf(QuantityOf(expectation), subject, limit)));
    }
  }
  return examination_->ReadTicks();
}

std::string Questions::WhomOf(size_t i) const {
  const Expectation& expectation = expectations_[i];
  std::string whom = ToString(expectation.selector, expectation.quantity.IsOfVms());
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
  const Scope& scope = *asked_[i].scope;
  const Selection& selection = asked_[i].selection;
  std::vector<Finding> findings;
  findings.reserve(selection.subjects.size());
  for (size_t s = 0; s < selection.subjects.size(); ++s) {
    findings.push_back(FindingOf(i, s, each));
  }
  // Whoever is missing may have been there all the time.
  const std::vector<TimeRange> pauses = Common(scope.spans, examination_->timetable().Pauses());
  const int64_t together_ns = selection.missing.empty()
                                  ? scope.judging.TimeOfAny(selection.subjects)
                                  : scope.time.judged_ns - TotalLength(pauses);
  return SumOf(question, WhomOf(i), findings, selection.missing, together_ns);
}

Questions::Known Questions::ValueOf(size_t i, const Subject* subject, const Asked* of) const {
  const Asked& asked = asked_[i];
  const auto& no_pass = asked.scope->WhyNoPass(expectations_[i].quantity);
  if (no_pass) return {.observed = {}, .why_not = *no_pass};
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
  const bool by_name = of->selection.vms.size() + of->selection.skipped.size() > 1 ||
                       selection.vms.size() + selection.skipped.size() > 1 ||
                       std::ranges::any_of(selection.subjects, [&](const Subject& other) {
                         return corresponds(other, true);
                       });
  // One of several of that name may have been anything.
  if (std::ranges::find(selection.skipped, subject->vm_name) != selection.skipped.end()) {
    return {.observed = {},
            .why_not = absl::StrCat("a VM ", Printable(subject->vm_name), " was not recorded")};
  }
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
          MissingSubject(ToString(expectation.selector, expectation.quantity.IsOfVms()), reason));
    }
  }
  if (expectation.quantifier == Quantifier::kAny) {
    findings = {AnyOf(expectation, WhomOf(i), findings)};
  }
  const auto& no_pass = asked.scope->WhyNoPass(expectation.quantity);
  for (Finding& finding : findings) {
    if (finding.outcome != Outcome::kPass || !no_pass) continue;
    finding.outcome = Outcome::kInconclusive;
    finding.reason = *no_pass;
  }
  Judged judged{.expectation = expectation};
  judged.outcome = WorstOf(findings, options_.allow_skip);
  judged.findings = std::move(findings);
  if (expectation.phase) judged.time = asked.scope->time;
  return judged;
}

}  // namespace vcpulse::check

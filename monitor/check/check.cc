#include "monitor/check/check.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/check/judging.h"
#include "monitor/check/outcome.h"
#include "monitor/check/subjects.h"
#include "monitor/check/timetable.h"
#include "monitor/reading/part.h"
#include "monitor/report/text_format.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::check {
namespace {

constexpr double kContention = 0.10;  // waiting for a CPU beyond this share of the time is told
constexpr size_t kPhasesListed = 8;

// The first reading, and what it says of the time to be judged.
struct Survey {
  Timetable timetable;
  timeline::ReadReport read;
  std::vector<TimeRange> spans;
  uint64_t next_sequence = 1;
  bool has_hole = false;                        // records before others are lost
  std::optional<std::string> nothing_to_judge;  // why
  std::optional<std::string> no_pass;           // why what is left of it proves nothing
};

std::string PhasesText(const Timetable& timetable) {
  std::vector<std::string> names = timetable.Phases();
  for (std::string& name : names) name = Printable(name);
  if (names.empty()) return "no phase was marked";
  return absl::StrCat("there are: ", Listed(names, kPhasesListed));
}

std::optional<std::string> WhyNothingToJudge(const Survey& survey, const CheckOptions& options) {
  const std::string phase = Printable(options.phase.value_or(""));
  if (survey.spans.empty()) {
    return absl::StrCat("phase '", phase, "' never came; ", PhasesText(survey.timetable));
  }
  const int64_t judged_ns = TotalLength(survey.spans);
  if (judged_ns > 0) {
    const std::vector<TimeRange> pauses = survey.timetable.Pauses();
    if (TotalLength(Common(survey.spans, pauses)) < judged_ns) return std::nullopt;
    return "the recording was paused for all of it";
  }
  if (survey.timetable.vms().empty()) return "no VM was recorded";
  int64_t longest_ns = 0;
  for (const TimeRange& span : survey.timetable.Spans(options.phase, 0)) {
    longest_ns = std::max(longest_ns, span.Length());
  }
  const auto text = [](int64_t ns) { return report::DurationText(static_cast<double>(ns)); };
  std::string why =
      absl::StrCat(options.phase ? absl::StrCat("phase '", phase, "'") : "the recording",
                   " lasted ", text(longest_ns));
  if (options.skip_first_ns > 0) {
    absl::StrAppend(&why, " at most, and its first ", text(options.skip_first_ns), " are skipped");
  }
  return why;
}

// A marker that was lost may have ended the phase, or begun another span of it.
std::optional<std::string> WhyNoPass(const Survey& survey, const CheckOptions& options) {
  if (!options.phase) return std::nullopt;
  if (survey.has_hole) return "records of the timeline are lost, a marker may be among them";
  if (!survey.read.ended_in_order && survey.timetable.LastsToTheEnd(*options.phase)) {
    return "the recording was cut off within the phase";
  }
  return std::nullopt;
}

// A timeline of which no chunk was whole.
absl::Status NothingRead(const reading::RepeatableInput& input, const timeline::ReadReport& read) {
  if (read.damages.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(input.Name(), ": holds no record"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      input.Name(), ": nothing could be read: ", Plural(read.damages.size(), "damaged region"),
      ", the first: ", read.damages.front().reason));
}

absl::StatusOr<std::unique_ptr<Survey>> SurveyOf(const reading::RepeatableInput& input,
                                                 const CheckOptions& options) {
  auto survey = std::make_unique<Survey>();
  auto read = input.Read([&](const timeline::Entry& entry) {
    if (entry.sequence > survey->next_sequence) survey->has_hole = true;
    survey->next_sequence = std::max(survey->next_sequence, entry.sequence + 1);
    absl::Status added = survey->timetable.Add(entry);
    if (added.ok()) return added;
    return absl::Status(added.code(), absl::StrCat(input.Name(), ": ", added.message()));
  });
  if (!read.ok()) return read.status();
  if (read->chunks == 0) return NothingRead(input, *read);
  survey->read = *std::move(read);
  survey->spans = survey->timetable.Spans(options.phase, options.skip_first_ns);
  survey->nothing_to_judge = WhyNothingToJudge(*survey, options);
  survey->no_pass = WhyNoPass(*survey, options);
  return survey;
}

absl::Status ReadTicks(const reading::RepeatableInput& input, Judging& judging) {
  return input.Read([&judging](const timeline::Entry& entry) { return judging.Add(entry); })
      .status();
}

// An expectation and the places of the answers for those it is about.
struct Asked {
  Selection selection;
  std::vector<size_t> places;
};

bool IsOfVms(const Quantity& quantity) { return quantity.kind == Quantity::Kind::kGaps; }

Result Describe(const Survey& survey, const CheckOptions& options) {
  const Timetable& timetable = survey.timetable;
  Result result;
  if (timetable.session()) result.host_name = timetable.session()->host_name();
  result.start_realtime_ns = timetable.StartRealtimeNs();
  result.duration_ns = timetable.Recording().Length();
  result.phase = options.phase;
  result.spans = survey.spans.size();
  result.judged_ns = TotalLength(survey.spans);
  result.phases = timetable.Phases();
  return result;
}

// Of a VM that ended before the judged time did, nothing where it did not.
std::optional<std::string> EndNote(const Survey& survey, uint32_t vm) {
  const std::optional<int64_t> ended_ns = survey.timetable.vms().at(vm).ended_ns;
  if (!ended_ns || survey.spans.empty() || *ended_ns >= survey.spans.back().to_ns) {
    return std::nullopt;
  }
  const std::string whose = "VM " + LabelOf(survey.timetable, vm);
  if (*ended_ns <= survey.spans.front().from_ns) {
    return whose + " had ended before the judged time, it is not judged";
  }
  const bool within = survey.timetable.GoneWithin(vm, survey.spans).has_value();
  const int64_t after_ns = *ended_ns - survey.timetable.Recording().from_ns;
  return absl::StrCat(whose, " ended ", report::DurationText(static_cast<double>(after_ns)),
                      " after the recording's start, ",
                      within ? "within the judged time" : "before the last span");
}

std::vector<std::string> NotesOf(const Survey& survey, const Judging& judging,
                                 const std::vector<Asked>& asked) {
  std::vector<std::string> notes;
  const std::string loss =
      report::DescribeLoss(survey.read, judging.unattributed_ticks(), survey.read.ended_in_order);
  if (!loss.empty()) notes.push_back(loss);
  const int64_t paused_ns = TotalLength(Common(survey.spans, survey.timetable.Pauses()));
  if (paused_ns > 0) {
    notes.push_back(absl::StrCat("the recording was paused for ",
                                 report::DurationText(static_cast<double>(paused_ns)), " of it"));
  }
  std::set<uint32_t> selected;
  for (const Asked& one : asked) {
    selected.insert(one.selection.vms.begin(), one.selection.vms.end());
  }
  for (const uint32_t vm : selected) {
    if (auto note = EndNote(survey, vm)) notes.push_back(*std::move(note));
  }
  std::vector<std::string> waited;
  for (const Waited& vcpu : judging.WaitedMoreThan(kContention)) {
    waited.push_back(absl::StrFormat("VM %s vCPU %d %.1f %%", LabelOf(survey.timetable, vcpu.vm),
                                     vcpu.vcpu, vcpu.share * 100));
  }
  if (!waited.empty()) {
    notes.push_back(absl::StrCat("the host was short of CPUs; of the judged time waited for one: ",
                                 Listed(waited, kPhasesListed)));
  }
  return notes;
}

Judged Judge(const Expectation& expectation, const Asked& asked,
             const std::vector<Watched>& answers, const Survey& survey,
             const CheckOptions& options) {
  const Question question{.quantity = expectation.quantity,
                          .comparison = expectation.comparison,
                          .limit = expectation.limit,
                          .min_ticks = options.min_ticks,
                          .min_measured = options.min_measured};
  const auto& session = survey.timetable.session();
  const std::string degraded_reason = session ? session->degraded_reason() : "";
  Judged judged{.expectation = expectation};
  for (size_t i = 0; i < asked.places.size(); ++i) {
    judged.findings.push_back(MakeFinding(question, asked.selection.subjects[i],
                                          answers[asked.places[i]],
                                          survey.timetable.Recording().from_ns, degraded_reason));
    Finding& finding = judged.findings.back();
    if (finding.outcome == Outcome::kPass && survey.no_pass) {
      finding.outcome = Outcome::kInconclusive;
      finding.reason = *survey.no_pass;
    }
  }
  const std::string whom = ToString(expectation.selector, IsOfVms(expectation.quantity));
  for (const std::string& reason : asked.selection.missing) {
    judged.findings.push_back(MissingSubject(whom, reason));
  }
  judged.outcome = WorstOf(judged.findings, options.allow_skip);
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
  const auto input = reading::RepeatableInput::Open(path);
  if (!input.ok()) return input.status();
  const auto survey = SurveyOf(*input, options);
  if (!survey.ok()) return survey.status();
  const Timetable& timetable = (*survey)->timetable;

  Judging judging(timetable, (*survey)->spans, options.phase.has_value());
  std::vector<Asked> asked(expectations.size());
  for (size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expectation = expectations[i];
    Selection& selection = asked[i].selection;
    if ((*survey)->nothing_to_judge) {
      selection.missing.push_back(*(*survey)->nothing_to_judge);
      continue;
    }
    selection =
        Select(timetable, (*survey)->spans, expectation.selector, IsOfVms(expectation.quantity));
    Quantity quantity = expectation.quantity;
    if (options.trust_ipc_bands && quantity.IsOfIpcBands()) quantity.by_ipc_bands = true;
    for (const Subject& subject : selection.subjects) {
      asked[i].places.push_back(
          judging.Watch(subject, quantity,
                        Limit{.comparison = expectation.comparison, .value = expectation.limit}));
    }
  }
  if (auto status = ReadTicks(*input, judging); !status.ok()) return status;
  const std::vector<Watched> answers = judging.Finish();

  Result result = Describe(**survey, options);
  result.notes = NotesOf(**survey, judging, asked);
  for (size_t i = 0; i < expectations.size(); ++i) {
    result.judged.push_back(Judge(expectations[i], asked[i], answers, **survey, options));
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
  const auto input = reading::RepeatableInput::Open(path);
  if (!input.ok()) return input.status();
  const auto survey = SurveyOf(*input, options);
  if (!survey.ok()) return survey.status();
  if ((*survey)->nothing_to_judge) return absl::NotFoundError(*(*survey)->nothing_to_judge);
  const Timetable& timetable = (*survey)->timetable;
  const Selection selection = Select(timetable, (*survey)->spans, selector, IsOfVms(quantity));
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
  Judging judging(timetable, (*survey)->spans, options.phase.has_value());
  judging.Watch(subject, quantity, std::nullopt);
  if (auto status = ReadTicks(*input, judging); !status.ok()) return status;
  const Watched watched = judging.Finish().front();
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

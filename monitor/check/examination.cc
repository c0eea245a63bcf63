#include "monitor/check/examination.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

constexpr size_t kPhasesListed = 8;

std::string PhasesText(const Timetable& timetable) {
  std::vector<std::string> names = timetable.Phases();
  for (std::string& name : names) name = Printable(name);
  if (names.empty()) return "no phase was marked";
  return absl::StrCat("phases are: ", Listed(names, kPhasesListed));
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

}  // namespace

absl::StatusOr<std::unique_ptr<Examination>> Examination::Open(const std::string& path,
                                                               int64_t skip_first_ns) {
  auto input = reading::RepeatableInput::Open(path);
  if (!input.ok()) return input.status();
  std::unique_ptr<Examination> examination(new Examination(*std::move(input), skip_first_ns));
  if (absl::Status status = examination->Survey(); !status.ok()) return status;
  return examination;
}

absl::Status Examination::Survey() {
  uint64_t next_sequence = 1;
  auto read = input_.Read([&](const timeline::Entry& entry) {
    if (entry.sequence > next_sequence) has_hole_ = true;
    next_sequence = std::max(next_sequence, entry.sequence + 1);
    absl::Status added = timetable_.Add(entry);
    if (added.ok()) return added;
    return absl::Status(added.code(), absl::StrCat(input_.Name(), ": ", added.message()));
  });
  if (!read.ok()) return read.status();
  if (read->chunks == 0) return NothingRead(input_, *read);
  read_ = *std::move(read);
  // What is damaged at the end leaves no hole before others.
  has_hole_ = has_hole_ || read_.MayLackRecords();
  return absl::OkStatus();
}

Scope& Examination::ScopeOf(const std::optional<std::string>& phase) {
  std::unique_ptr<Scope>& scope = scopes_[phase];
  if (scope != nullptr) return *scope;
  std::vector<TimeRange> spans = timetable_.Spans(phase, skip_first_ns_);
  const JudgedTime time{.phase = phase, .spans = spans.size(), .judged_ns = TotalLength(spans)};
  auto nothing_to_judge = WhyNothingToJudge(time, spans);
  Judging judging(timetable_, spans, phase.has_value());
  scope = std::make_unique<Scope>(Scope{.time = time,
                                        .spans = std::move(spans),
                                        .nothing_to_judge = std::move(nothing_to_judge),
                                        .no_pass = WhyNoPass(phase),
                                        .no_pass_of_gaps = WhyNoPassOfGaps(),
                                        .judging = std::move(judging)});
  return *scope;
}

Asked Examination::Ask(const std::optional<std::string>& phase, const Selector& selector,
                       bool of_vms) {
  Scope& scope = ScopeOf(phase);
  Asked asked{.scope = &scope};
  if (scope.nothing_to_judge) {
    asked.selection.missing.push_back(*scope.nothing_to_judge);
  } else {
    asked.selection = Select(timetable_, scope.spans, selector, of_vms);
  }
  return asked;
}

absl::Status Examination::ReadTicks() {
  const auto read = input_.Read([this](const timeline::Entry& entry) {
    absl::Status status;
    for (const auto& [phase, scope] : scopes_) status.Update(scope->judging.Add(entry));
    return status;
  });
  if (!read.ok()) return read.status();
  for (const auto& [phase, scope] : scopes_) scope->answers = scope->judging.Finish();
  return absl::OkStatus();
}

std::optional<std::string> Examination::WhyNothingToJudge(
    const JudgedTime& time, const std::vector<TimeRange>& spans) const {
  const std::string phase = Printable(time.phase.value_or(""));
  if (spans.empty()) return absl::StrCat("no phase '", phase, "'; ", PhasesText(timetable_));
  if (time.judged_ns > 0) {
    if (TotalLength(Common(spans, timetable_.Pauses())) < time.judged_ns) return std::nullopt;
    return "the recording was paused for all of it";
  }
  if (timetable_.vms().empty()) return "no VM was recorded";
  int64_t longest_ns = 0;
  for (const TimeRange& span : timetable_.Spans(time.phase, 0)) {
    longest_ns = std::max(longest_ns, span.Length());
  }
  const auto text = [](int64_t ns) { return report::DurationText(static_cast<double>(ns)); };
  std::string why = absl::StrCat(time.phase ? absl::StrCat("phase '", phase, "'") : "the recording",
                                 " lasted ", text(longest_ns));
  if (skip_first_ns_ > 0) {
    absl::StrAppend(&why, " at most, and its first ", text(skip_first_ns_), " are skipped");
  }
  return why;
}

// A marker that was lost may have ended the phase, or begun another span of it.
std::optional<std::string> Examination::WhyNoPass(const std::optional<std::string>& phase) const {
  if (!phase) return std::nullopt;
  if (has_hole_) return "records of the timeline are lost, a marker may be among them";
  if (!read_.ended_in_order && timetable_.LastsToTheEnd(*phase)) {
    return "the recording was cut off within the phase";
  }
  return std::nullopt;
}

// How long the time before the first record was is not known, nor that of a lost end.
std::optional<std::string> Examination::WhyNoPassOfGaps() const {
  if (read_.lost_before_first > 0) {
    return absl::StrCat("the timeline ", report::BeginsLateText(read_.lost_before_first + 1));
  }
  if (read_.lost_end) {
    return "records at the end of the timeline may be lost: how long it lasted is not known";
  }
  return std::nullopt;
}

}  // namespace vcpulse::check

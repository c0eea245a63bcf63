#include "monitor/check/judging.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/check/words.h"
#include "monitor/core/classify.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_format.h"

namespace vcpulse::check {
namespace {

// What time a metric of readings is of. A reading is stamped apart from the ticks: it was made
// after the tick before.
TimeRange ReadOver(const metric::Ratio& per_second, const metric::StatisticsDelta& statistics,
                   const TimeRange& interval) {
  const int64_t end_ns = std::clamp(WithinReason(statistics.EndNs()), interval.from_ns + 1,
                                    std::max(interval.from_ns + 1, interval.to_ns));
  return {.from_ns = end_ns - std::llround(per_second.whole * 1e9), .to_ns = end_ns};
}

// The interval a sample tells of. One that is much longer than a tick is that of a late tick, or of
// one after others that were missed: only its last part, as long as a tick, is this tick's; the
// rest may have been anything. (Which of them has the long interval, and which number was passed
// over, depends on when in its sleep the sampling thread was held up.)
TimeRange CoveredBy(const core::VcpuSample& before, const core::VcpuSample& now,
                    const Timetable& timetable) {
  TimeRange covered{.from_ns = metric::MiddleOf(before), .to_ns = metric::MiddleOf(now)};
  const int64_t tick_ns = timetable.Interval_ns();
  // Values that the kernel had kept (docs/reading.md) are as far apart as its own ticks.
  constexpr int64_t kKeptFor_ns = 12'000'000;
  const bool kept = timetable.session() && timetable.session()->reader() == "bpf" &&
                    now.read_begin_ns == now.read_end_ns;
  const int64_t slack_ns = kept ? std::max(tick_ns / 2, kKeptFor_ns) : tick_ns / 2;
  if (tick_ns > 0 && covered.Length() - tick_ns > slack_ns)
    covered.from_ns = covered.to_ns - tick_ns;
  return covered;
}

bool HasPrevious(const timeline::TickEntry& tick) {
  return tick.previous != nullptr && tick.previous->vcpus.size() == tick.sample.vcpus.size();
}

std::string Duration(int64_t ns) { return report::DurationText(static_cast<double>(ns)); }

// Why what was observed is a range.
std::string DoubtText(const Question& question, const Subject& subject, const Tallied& tallied,
                      const Finding& finding) {
  std::vector<std::string> why;
  const auto add = [&why, &finding](int64_t part_ns, const std::string& text) {
    if (part_ns == 0) return;
    const std::string whole = why.empty() ? absl::StrCat(" of ", Duration(finding.judged_ns)) : "";
    why.push_back(absl::StrCat(ShareText(part_ns, finding.judged_ns), whole, text));
  };
  add(tallied.unknown_ns - tallied.ipc_bands_ns - tallied.residency_ns,
      subject.unopened ? absl::StrCat(" is not known; for some of that it was not open: ",
                                      Printable(*subject.unopened))
                       : " is not known");
  add(tallied.ipc_bands_ns,
      " is judged by ipc-bands, which is a hint: record more events, so that `evidence` judges, or "
      "accept it by --trust-ipc-bands or 'by ipc-bands' in the expectation");
  if (tallied.residency_ns > 0) {
    why.emplace_back(
        "residency lies between the two, as without ref-cycles guest cycles give only a lower "
        "bound and time on a CPU an upper one");
  }
  if (finding.limit && finding.limit->low < finding.limit->high) {
    why.emplace_back("the baseline is a range");
  }
  if (question.quantity.kind == Quantity::Kind::kHot && why.empty()) {
    why.emplace_back(
        "a share of few samples is known roughly, and those of its kernel that no symbol names may "
        "be in any function (--guest-kallsyms, --guest-symbols)");
  }
  if (why.empty()) why.emplace_back("percentiles are known to 0.6 %");
  return absl::StrJoin(why, ", and ");
}

// What was observed and wanted.
std::string Comparing(const Question& question, const Subject& subject, const Tallied& tallied,
                      const Finding& finding) {
  std::string text = ComparingText(question, *tallied.observed);
  if (finding.outcome == Outcome::kInconclusive) {
    absl::StrAppend(&text, ": ", DoubtText(question, subject, tallied, finding));
  } else if (finding.worst) {
    absl::StrAppend(&text, "; worst ",
                    WorstText(question.quantity, *finding.worst, question.limit->low));
  }
  return text;
}

std::string ReasonOf(const Question& question, const Subject& subject, const Watched& watched,
                     const Finding& finding, Why why, const std::string& degraded_reason) {
  if (subject.unopened && finding.ticks == 0 && why != Why::kNoCounters) {
    return absl::StrCat("it could not be opened: ", Printable(*subject.unopened));
  }
  const auto label = ToAbsl(metric::InfoOf(question.quantity.metric).label);
  switch (why) {
    case Why::kBounds:
      return finding.outcome == Outcome::kPass
                 ? ""
                 : Comparing(question, subject, watched.tallied, finding);
    case Why::kNoCounters:
      return absl::StrCat(ToString(question.quantity),
                          " needs hardware counters, and none was read",
                          degraded_reason.empty() ? "" : ": ", Printable(degraded_reason));
    case Why::kNothingToJudge:
      return "there is no time to judge";
    case Why::kTooFewTicks:
      return absl::StrCat(Plural(finding.ticks, "tick"), " measured in ",
                          Duration(finding.judged_ns), ", wanted >= ", question.min_ticks);
    case Why::kTooLittleMeasured:
      return absl::StrCat(ShareText(watched.support.measured_ns, finding.judged_ns), " of ",
                          Duration(finding.judged_ns),
                          " measured, wanted >= ", LimitText(kGaps, question.min_measured));
    case Why::kNotSampled:
      return "no hot address of it was sampled in the judged time (`record --hotspots`; where a "
             "source "
             "was refused, `report` has the reason)";
    case Why::kNothingObserved:
      if (metric::InfoOf(question.quantity.metric).of_readings) {
        return absl::StrCat("its ", label, " was never read over time that is judged here");
      }
      return finding.unknown_ns == 0
                 ? absl::StrCat("HALTED all the time, so there is no ", label, " to judge")
                 : absl::StrCat("its ", label, " was never counted while it was not HALTED");
    case Why::kNoLimit:
      return question.no_limit;
  }
  return "";
}

}  // namespace

Judging::Judging(const Timetable& timetable, const std::vector<TimeRange>& spans, bool ends_count)
    : timetable_(timetable), interval_ns_(timetable.Interval_ns()) {
  for (const auto& [number, vm] : timetable.vms()) {
    const auto gone = ends_count ? timetable.GoneWithin(number, spans) : std::nullopt;
    if (gone) gone_.emplace(number, *gone);
    Begin(Key(number, std::nullopt), spans, timetable.SampledWindows(number));
    for (const auto& [unused, epoch] : vm.epochs) {
      for (const uint32_t index : epoch.vcpus) {
        Begin(Key(number, index), spans, timetable.VcpuWindows(number, index));
      }
      for (const Epoch::Unopened& vcpu : epoch.unopened) {
        Begin(Key(number, vcpu.index), spans, timetable.VcpuWindows(number, vcpu.index));
      }
    }
  }
}

void Judging::Begin(const Key& key, const std::vector<TimeRange>& spans,
                    std::vector<TimeRange> windows) {
  if (tracked_.contains(key)) return;
  // One that was unplugged before is not waited for.
  const auto gone = gone_.find(key.first);
  if (gone != gone_.end() && !windows.empty() &&
      windows.back().to_ns == timetable_.LastVcpuUntil(key.first)) {
    windows.push_back(gone->second);
    windows = Joined(std::move(windows));
  }
  tracked_.emplace(key, Tracked{Coverage(Common(spans, windows))});
}

size_t Judging::Watch(const Subject& subject, const Quantity& quantity,
                      const std::optional<Limit>& limit) {
  return WatchBy(subject, NewTally(quantity, limit));
}

size_t Judging::WatchBy(const Subject& subject, std::unique_ptr<Tally> tally) {
  tracked_.at({subject.vm, subject.vcpu})
      .asked.push_back({.place = watched_, .tally = std::move(tally)});
  return watched_++;
}

int64_t Judging::TimeOfAny(const std::vector<Subject>& subjects) const {
  std::vector<TimeRange> pieces;
  for (const Subject& subject : subjects) {
    std::ranges::copy(tracked_.at({subject.vm, subject.vcpu}).coverage.pieces(),
                      std::back_inserter(pieces));
  }
  return TotalLength(Joined(std::move(pieces)));
}

absl::Status Judging::Add(const timeline::Entry& entry) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    const metric::Tick read{.vm = tick->vm, .epoch = tick->epoch, .sample = tick->sample};
    const bool fits = intervals_.EpochOf(read) != nullptr;
    // A folder may have grown since the first reading.
    const Epoch* const epoch = timetable_.FindEpoch(tick->vm, tick->epoch);
    if (fits && (epoch == nullptr || tick->verdicts.size() != tick->sample.vcpus.size())) {
      ++unjudged_ticks_;
      return absl::OkStatus();
    }
    if (fits && !tick->sample.vcpus.empty()) FollowVm(*tick, *epoch);
  }
  if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) TakeWindow(*hot);
  return intervals_.Add(entry, [this](const metric::Interval& interval) {
    TakeInterval(interval);
    return absl::OkStatus();
  });
}

void Judging::TakeInterval(const metric::Interval& interval) {
  const core::VcpuDelta& delta = interval.delta;
  // `evidence` has a rule of the same name, which looks at more.
  const bool by_ipc_bands =
      reading::ClassifierOf(interval.epoch.set) == core::ToString(core::Classifier::kIpcBands);
  Observation seen{.verdict = interval.verdict,
                   .by_ipc_alone = by_ipc_bands && core::IsOfIpcAlone(interval.verdict.rule),
                   .degraded = interval.epoch.IsDegraded()};
  if (delta.run_delay_ns) {
    seen.waiting = std::min(
        1.0, static_cast<double>(*delta.run_delay_ns) / static_cast<double>(delta.interval_ns));
  }
  const TimeRange covered = CoveredBy(interval.before, interval.now, timetable_);
  for (const metric::Info& info : metric::Table()) {
    if (!info.asked || (seen.degraded && info.needs_counters)) continue;
    const metric::Ratio ratio = info.of(interval);
    const auto i = static_cast<size_t>(info.metric);
    seen.values[i] = ratio.Value();
    if (info.of_readings && seen.values[i])
      seen.read_over[i] = ReadOver(ratio, *interval.statistics, covered);
  }
  if (const auto range = interval.ResidencyRange(); range && !seen.degraded) {
    seen.residency = Bounds{.low = range->low, .high = range->high};
  }
  Tracked& tracked = tracked_.at({interval.Vm(), interval.Vcpu().index()});
  Give(tracked, tracked.coverage.Take(covered, seen), covered);
}

// A VM's samples tell of its gaps.
void Judging::FollowVm(const timeline::TickEntry& tick, const Epoch& epoch) {
  Tracked& tracked = tracked_.at({tick.vm, std::nullopt});
  BeginEpoch(tick.vm, tracked, tick.epoch);
  Followed& followed = followed_[tick.vm];
  const int64_t sample_ns = metric::MiddleOf(tick.sample.vcpus.front());
  if (HasPrevious(tick)) {
    const Observation sampled{.in_part = !epoch.unopened.empty()};
    const TimeRange covered =
        CoveredBy(tick.previous->vcpus.front(), tick.sample.vcpus.front(), timetable_);
    Give(tracked, tracked.coverage.Take(covered, sampled), covered);
  } else {
    // Opening takes a while, and the first tick may lie up to an interval away.
    const int64_t due_ns = interval_ns_ > 0 ? epoch.from_ns + 2 * interval_ns_ : sample_ns;
    NoSampleDue(tracked, {.from_ns = epoch.from_ns, .to_ns = std::min(sample_ns, due_ns)});
  }
  if (followed.epoch != tick.epoch) return;  // the last ones of an epoch that another follows
  followed.has_sample = true;
  followed.last_sample_ns = sample_ns;
}

// Before the first tick of an epoch: what lies between it and the last tick of the one before.
void Judging::BeginEpoch(uint32_t vm, Tracked& tracked, uint32_t epoch) {
  Followed& followed = followed_[vm];
  const auto& epochs = timetable_.vms().at(vm).epochs;
  while (followed.epoch < epoch) {
    EndEpoch(vm, tracked);
    const auto next = epochs.upper_bound(followed.epoch);
    followed = {.epoch = next == epochs.end() ? epoch : std::min(epoch, next->first)};
  }
}

// No sample is due for one interval after the last one, or after the start of an epoch.
void Judging::EndEpoch(uint32_t vm, Tracked& tracked) {
  const Followed& followed = followed_[vm];
  const Epoch* const epoch = timetable_.FindEpoch(vm, followed.epoch);
  if (epoch == nullptr || epoch->vcpus.empty()) return;
  const TimeRange window = timetable_.WindowOf(*epoch);
  const int64_t last_ns = followed.has_sample ? followed.last_sample_ns : window.from_ns;
  NoSampleDue(tracked,
              {.from_ns = last_ns, .to_ns = std::min(window.to_ns, last_ns + interval_ns_)});
}

void Judging::TakeWindow(const v1::HotAddresses& window) {
  const auto tracked = tracked_.find({window.vm(), window.vcpu_index()});
  const auto there = timetable_.VcpuWindows(window.vm(), window.vcpu_index());
  if (tracked == tracked_.end() || there.empty()) return;
  // One that ended with the vCPU, or the recording, was closed after the last sample.
  const int64_t end_ns = std::min(window.mono_ns(), there.back().to_ns);
  const bool is_judged =
      std::ranges::any_of(tracked->second.coverage.pieces(), [&](const TimeRange& piece) {
        return piece.from_ns <= window.begin_mono_ns() && end_ns <= piece.to_ns;
      });
  if (!is_judged) return;
  for (const Asked& question : tracked->second.asked) question.tally->Take(window);
}

void Judging::NoSampleDue(Tracked& tracked, const TimeRange& when) {
  const Observation none_due;
  Give(tracked, tracked.coverage.Take(when, none_due));
}

void Judging::Give(Tracked& tracked, std::span<const Part> parts, const TimeRange& sampled) {
  int64_t measured_ns = 0;
  for (const Part& part : parts) {
    const int64_t length_ns = part.when.Length();
    tracked.support.judged_ns += length_ns;
    if (part.observation != nullptr && sampled.Length() > 0) {
      measured_ns += length_ns;
      if (part.observation->waiting) {
        tracked.waited_ns += *part.observation->waiting * static_cast<double>(length_ns);
        tracked.waiting_known_ns += static_cast<double>(length_ns);
      }
    }
    for (const Asked& question : tracked.asked) question.tally->Add(part);
  }
  tracked.support.measured_ns += measured_ns;
  // A tick that mostly tells of other time is none of this.
  if (measured_ns > 0 && measured_ns >= sampled.Length() - measured_ns) ++tracked.support.ticks;
}

std::vector<Watched> Judging::Finish() {
  std::vector<Watched> answers(watched_);
  for (auto& [key, tracked] : tracked_) {
    if (!key.second) {
      BeginEpoch(key.first, tracked, std::numeric_limits<uint32_t>::max());
      EndEpoch(key.first, tracked);
      if (const auto gone = gone_.find(key.first); gone != gone_.end()) {
        const Observation ended{.in_part = true};
        Give(tracked, tracked.coverage.Take(gone->second, ended));
      }
    }
    Give(tracked, tracked.coverage.Finish());
    for (const Asked& question : tracked.asked) {
      answers[question.place] = {.tallied = question.tally->Finish(), .support = tracked.support};
    }
  }
  return answers;
}

std::vector<Waited> Judging::WaitedMoreThan(double share) const {
  std::vector<Waited> found;
  for (const auto& [key, tracked] : tracked_) {
    // False for a VM, and where waiting was never measured: 0 is not above 0.
    if (tracked.waited_ns > share * tracked.waiting_known_ns) {
      found.push_back({.vm = key.first,
                       .vcpu = *key.second,
                       .share = tracked.waited_ns / tracked.waiting_known_ns});
    }
  }
  return found;
}

Finding MakeFinding(const Question& question, const Subject& subject, const Watched& watched,
                    int64_t start_ns, const std::string& degraded_reason) {
  const Decision decision =
      Decide(question, watched.tallied.observed, watched.support, subject.degraded);
  Finding finding{.subject = subject.label,
                  .vm = subject.vm_name,
                  .vcpu = subject.vcpu,
                  .outcome = decision.outcome,
                  .ticks = watched.support.ticks,
                  .judged_ns = watched.support.judged_ns,
                  .unknown_ns = watched.tallied.unknown_ns};
  if (!question.wanted.empty()) finding.limit = question.limit;
  // Gaps are measured by what is not.
  const bool measured = finding.ticks > 0 || question.quantity.kind == Quantity::Kind::kGaps;
  if (decision.why != Why::kNoCounters && measured) {
    finding.observed = watched.tallied.observed;
  }
  const std::optional<ObservedRange>& worst = watched.tallied.worst;
  if (decision.outcome == Outcome::kFail && worst) {
    finding.worst = WorstSpan{.from_ns = worst->when.from_ns - start_ns,
                              .to_ns = worst->when.to_ns - start_ns,
                              .observed = worst->observed};
  }
  finding.reason = ReasonOf(question, subject, watched, finding, decision.why, degraded_reason);
  return finding;
}

Finding MissingSubject(const std::string& whom, const std::string& reason) {
  Finding finding;
  finding.subject = whom;
  finding.outcome = Outcome::kInconclusive;
  finding.reason = reason;
  return finding;
}

}  // namespace vcpulse::check

#include "monitor/compare/compare.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/check/subjects.h"
#include "monitor/compare/judging.h"
#include "monitor/compare/matching.h"
#include "monitor/compare/recording.h"

namespace vcpulse::compare {
namespace {

constexpr size_t kNamesListed = 8;  // names in one message
constexpr size_t kFewestRuns = 2;   // per side, for a variance between them
constexpr double kLeastBlock_ns = 1e9;
constexpr uint64_t kSeedsEach = 512;           // more than two for each metric there may ever be
constexpr double kLeastBlockShare = 1.0 / 20;  // of a series that is shorter than 20 s

using Phases = std::vector<std::optional<std::string>>;

std::string NamesText(std::vector<std::string> names) {
  for (std::string& name : names) name = Printable(name);
  return names.empty() ? "no phase was marked"
                       : absl::StrCat("phases are: ", Listed(names, kNamesListed));
}

std::vector<std::string> Without(const std::vector<std::string>& names,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> rest;
  std::ranges::copy_if(names, std::back_inserter(rest), [&others](const std::string& name) {
    return std::ranges::find(others, name) == others.end();
  });
  return rest;
}

// The phases to compare; notes name those that not every recording has.
absl::StatusOr<Phases> ChoosePhases(std::span<const Recording> recordings,
                                    const CompareOptions& options,
                                    std::vector<std::string>& notes) {
  if (options.whole) return Phases{std::nullopt};
  const std::optional<std::string>& wanted = options.phase;
  std::vector<std::string> common = recordings.front().timetable().Phases();
  bool any = false;
  for (const Recording& recording : recordings) {
    const std::vector<std::string> names = recording.timetable().Phases();
    if (wanted && std::ranges::find(names, *wanted) == names.end()) {
      return absl::NotFoundError(absl::StrCat(recording.Name(), ": no phase '", Printable(*wanted),
                                              "'; ", NamesText(names)));
    }
    common = Without(common, Without(common, names));
    any = any || !names.empty();
  }
  if (wanted) return Phases{*wanted};
  for (const Recording& recording : recordings) {
    std::vector<std::string> names = Without(recording.timetable().Phases(), common);
    for (std::string& name : names) name = Printable(name);
    if (names.empty()) continue;
    notes.push_back(absl::StrCat("phases of ", recording.label(), " that ",
                                 recordings.size() == 2 ? "the other" : "another",
                                 " recording lacks: ", Listed(names, kNamesListed)));
  }
  if (!common.empty()) return Phases(common.begin(), common.end());
  if (any) {
    notes.push_back(absl::StrCat("no phase is in ", recordings.size() == 2 ? "both" : "all",
                                 ", so the whole recordings are compared"));
  }
  return Phases{std::nullopt};
}

// One vCPU in one phase in each recording of a side.
using Runs = std::vector<const Series*>;

std::vector<double> ValuesOf(const Runs& runs, Metric metric) {
  std::vector<double> values;
  for (const Series* series : runs) {
    if (const auto value = series->total().Value(metric)) values.push_back(*value);
  }
  return values;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Seen SeenOf(const Runs& runs, Metric metric) {
  const std::vector<double> values = ValuesOf(runs, metric);
  Seen seen{.runs = values.size()};
  if (!values.empty()) seen.value = MeanOf(values);
  for (const Series* series : runs) {
    seen.ticks += series->ticks();
    seen.length_ns += series->length_ns();
  }
  return seen;
}

// Fills in what the bootstrap says of `seen`.
std::optional<Resampled> ResampleSeries(const Series& series, Metric metric, uint64_t seed,
                                        Seen& seen) {
  std::vector<Piece> pieces;
  pieces.reserve(series.cells().size());
  for (const Cell& cell : series.cells()) {
    const metric::Ratio& ratio = cell.totals.Of(metric);
    pieces.push_back({.part = ratio.part, .whole = ratio.whole, .begins = cell.begins});
  }
  if (pieces.empty()) return std::nullopt;
  const auto count = static_cast<double>(pieces.size());
  const double cell_ns = static_cast<double>(series.length_ns()) / count;
  const double least = std::min(kLeastBlock_ns / cell_ns, count * kLeastBlockShare);
  auto resampled = Resample(pieces, least, seed);
  if (!resampled) return std::nullopt;
  seen.block_ns = static_cast<int64_t>(resampled->block_pieces * cell_ns);
  seen.blocks = resampled->blocks;
  return resampled;
}

bool Means(const check::Selector& selector, const VmGroup& vm) {
  return !selector.vm || vm.name == *selector.vm || absl::EqualsIgnoreCase(vm.uuid, *selector.vm);
}

// `vm` is the VM in each recording.
bool Means(const check::Selector& selector, const std::vector<const VmGroup*>& vm) {
  return std::ranges::any_of(vm, [&](const VmGroup* group) { return Means(selector, *group); });
}

bool Fits(const Limit& limit, const std::vector<const VmGroup*>& vm, uint32_t vcpu,
          const std::optional<std::string>& phase) {
  const check::Selector& selector = limit.selector;
  return (!limit.phase || limit.phase == phase) && Means(selector, vm) &&
         (selector.vcpus.empty() ||
          std::ranges::any_of(selector.vcpus, [vcpu](const check::IndexRange& range) {
            return range.first <= vcpu && vcpu <= range.last;
          }));
}

// Compares what all recordings measured of one vCPU in one phase.
class RowMaker {
 public:
  // `lossy` names the recordings that may lack records.
  RowMaker(const CompareOptions& options, bool between_runs, std::string lossy)
      : limits_(options.limits),
        lossy_(std::move(lossy)),
        allow_skip_(options.allow_skip),
        may_judge_(between_runs || options.single_run),
        between_runs_(between_runs),
        held_(limits_.size()),
        known_(limits_.size()) {}

  void Add(const std::vector<const VmGroup*>& vm, uint32_t vcpu,
           const std::optional<std::string>& phase, const Runs& a, const Runs& b) {
    Know(vm, vcpu);
    for (const metric::Info& info : metric::Table()) {
      if (!info.asked) continue;
      const Metric metric = info.metric;
      Row row{.vm = vm.front()->label, .vcpu = vcpu, .phase = phase, .metric = metric};
      row.a = SeenOf(a, metric);
      row.b = SeenOf(b, metric);
      const Contrasts contrast_of = between_runs_ ? OfRuns(a, b, metric) : OfTicks(a, b, row);
      if (row.a.value && row.b.value) row.difference = *row.b.value - *row.a.value;
      if (contrast_of) {
        row.contrast = Clipped(metric, contrast_of(1));
        row.chance = row.contrast->ChanceBeyond(0);
      }
      for (size_t i = 0; i < limits_.size(); ++i) {
        const Limit& limit = limits_[i];
        const bool fits = limit.metric == metric && Fits(limit, vm, vcpu, phase);
        if (!fits || NeverBusy(row, a, b)) continue;
        std::optional<Contrast> beyond = row.contrast;
        if (beyond && limit.relative) beyond = contrast_of(1 + limit.value);
        const bool needs_counters =
            !row.difference || metric == Metric::kSpinning || metric == Metric::kProductive;
        held_[i].push_back(HoldAgainst(limit, row, beyond, DoubtOf(metric, a, b),
                                       needs_counters && (HadNoCounters(a) || HadNoCounters(b))));
        if (phase && held_[i].back().surely_within && !lossy_.empty()) {
          held_[i].back().surely_within = false;
          absl::StrAppend(&held_[i].back().finding.reason, "; records of ", lossy_,
                          " are lost, a marker may be among them");
        }
      }
      rows_.push_back(std::move(row));
    }
    ++vcpus_;
  }

  // A vCPU that not every recording has, as `why` says: its limits are not decided.
  void LeaveOut(const std::vector<const VmGroup*>& vm, uint32_t vcpu,
                const std::optional<std::string>& phase, const std::string& why) {
    Know(vm, vcpu);
    for (size_t i = 0; i < limits_.size(); ++i) {
      if (!Fits(limits_[i], vm, vcpu, phase)) continue;
      const Row row{.vm = vm.front()->label, .vcpu = vcpu, .phase = phase};
      held_[i].push_back({.finding = {.subject = Subject(row), .reason = why}});
    }
  }
  // A VM.
  void LeaveOut(const LeftOut& left_out) {
    std::string subject = absl::StrCat("VM ", left_out.vm.label);
    if (left_out.phase) absl::StrAppend(&subject, " phase ", Printable(*left_out.phase));
    for (size_t i = 0; i < limits_.size(); ++i) {
      const Limit& limit = limits_[i];
      if (!Means(limit.selector, left_out.vm)) continue;
      if (limit.phase && limit.phase != left_out.phase) continue;
      held_[i].push_back({.finding = {.subject = subject, .reason = left_out.why}});
    }
  }

  void Finish(Comparison& comparison) {
    comparison.rows = std::move(rows_);
    JudgeRows(comparison);
    for (size_t i = 0; i < limits_.size(); ++i) {
      const std::string nobody = check::NotAmong(limits_[i].selector.vcpus, known_[i]);
      if (!nobody.empty() && !held_[i].empty()) {
        held_[i].push_back({.finding = {.subject = absl::StrCat("vCPU ", nobody),
                                        .reason = "no VM that was compared has it"}});
      }
      comparison.limits.push_back(Judge(limits_[i], std::move(held_[i]), allow_skip_));
      if (!may_judge_) DoubtWithoutRuns(comparison.limits.back());
    }
    comparison.outcome = check::WorstOf(comparison.limits, allow_skip_);
  }

 private:
  void Know(const std::vector<const VmGroup*>& vm, uint32_t vcpu) {
    for (size_t i = 0; i < limits_.size(); ++i) {
      if (Means(limits_[i].selector, vm)) known_[i].insert(vcpu);
    }
  }

  // From a factor to the contrast; empty where there is too little to judge by.
  using Contrasts = std::function<Contrast(double factor)>;

  static Contrasts OfRuns(const Runs& a, const Runs& b, Metric metric) {
    std::vector<double> of_a = ValuesOf(a, metric);
    std::vector<double> of_b = ValuesOf(b, metric);
    if (of_a.size() < kFewestRuns || of_b.size() < kFewestRuns) return nullptr;
    return [of_a = std::move(of_a), of_b = std::move(of_b)](double factor) {
      return ContrastOfRuns(of_a, of_b, factor);
    };
  }

  Contrasts OfTicks(const Runs& a, const Runs& b, Row& row) const {
    // Each row and side has random numbers of its own, the same in each run.
    const uint64_t seed = kSeedsEach * vcpus_ + 2 * static_cast<uint64_t>(row.metric);
    auto of_a = ResampleSeries(*a.front(), row.metric, seed, row.a);
    auto of_b = ResampleSeries(*b.front(), row.metric, seed + 1, row.b);
    if (!of_a || !of_b) return nullptr;
    return [of_a = *std::move(of_a), of_b = *std::move(of_b)](double factor) {
      return ContrastOf(of_a, of_b, factor);
    };
  }

  static bool HadNoCounters(const Runs& runs) {
    return std::ranges::any_of(
        runs, [](const Series* series) { return series->total().HadNoCounters(); });
  }

  // An IPC that a vCPU could not have, as it was HALTED throughout in all runs: no limit is about
  // it.
  static bool NeverBusy(const Row& row, const Runs& a, const Runs& b) {
    const auto halted = [](const Series* series) {
      return series->total().Value(Metric::kHalted) == 1.0;
    };
    return !metric::InfoOf(row.metric).IsShare() && !row.a.value && !row.b.value &&
           std::ranges::all_of(a, halted) && std::ranges::all_of(b, halted);
  }

  static Doubt DoubtOf(Metric metric, const Runs& a, const Runs& b) {
    if (metric != Metric::kHalted && metric != Metric::kSpinning && metric != Metric::kProductive) {
      return {};
    }
    const auto doubt = [metric](const Runs& runs) {
      std::vector<double> doubts;
      for (const Series* series : runs) {
        metric::Ratio unknown = series->total().Of(Metric::kUnknown);
        // Without counters it says at least that the vCPU was on a CPU, so not HALTED.
        if (metric == Metric::kHalted) unknown.part -= series->total().NoCountersNs();
        // A run without a value is in no mean.
        if (const auto value = unknown.Value()) doubts.push_back(std::max(0.0, *value));
      }
      return doubts.empty() ? 0 : MeanOf(doubts);
    };
    return {.a = doubt(a), .b = doubt(b)};
  }

  // No share differs by more than all.
  static Contrast Clipped(Metric metric, Contrast contrast) {
    if (!metric::InfoOf(metric).IsShare()) return contrast;
    contrast.low = std::max(contrast.low, -1.0);
    contrast.high = std::min(contrast.high, 1.0);
    return contrast;
  }

  const std::vector<Limit>& limits_;
  const std::string lossy_;
  bool allow_skip_;
  bool may_judge_;
  bool between_runs_;
  std::vector<std::vector<Held>> held_;    // by limit
  std::vector<std::set<uint32_t>> known_;  // vCPUs of the VMs that it means
  std::vector<Row> rows_;
  uint64_t vcpus_ = 0;  // whose rows were made, in each phase anew
};

// All series that some recording has.
std::set<SeriesKey> KeysOf(std::span<const Measured> measured) {
  std::set<SeriesKey> keys;
  for (const Measured& of_one : measured) {
    for (const auto& [key, series] : of_one.series) keys.insert(key);
  }
  return keys;
}

// Names what not every recording has, so that nothing is dropped unsaid.
void NoteUnmatched(const Phases& phases, std::span<const Recording> recordings,
                   std::span<const Measured> measured, const std::vector<VmGroup>& groups,
                   std::vector<std::string>& notes) {
  const std::set<SeriesKey> keys = KeysOf(measured);
  for (size_t i = 0; i < recordings.size(); ++i) {
    std::vector<std::string> missing;
    for (const SeriesKey& key : keys) {
      if (measured[i].series.contains(key)) continue;
      missing.push_back(absl::StrCat("VM ", groups[key.group].label, " vCPU ", key.vcpu));
      if (phases[key.phase]) {
        absl::StrAppend(&missing.back(), " in phase ", Printable(*phases[key.phase]));
      }
    }
    if (missing.empty()) continue;
    notes.push_back(absl::StrCat("not compared, as ", recordings[i].label(),
                                 " has no sample of it: ", Listed(missing, kNamesListed)));
  }
}

// Errors: InvalidArgument where a side has too few runs, or one run is named twice.
absl::Status CheckSides(std::span<const std::string> before, std::span<const std::string> after) {
  if (before.empty() || after.empty()) {
    return absl::InvalidArgumentError("each side needs a recording");
  }
  if ((before.size() == 1) != (after.size() == 1)) {
    const bool few_before = before.size() == 1;
    return absl::InvalidArgumentError(
        absl::StrCat("one recording ", few_before ? "before" : "after", " and ",
                     few_before ? after.size() : before.size(), few_before ? " after" : " before",
                     ": the variance between runs needs at least 2 recordings per side"));
  }
  const auto inputs = std::ranges::count(before, "-") + std::ranges::count(after, "-");
  if (inputs <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "- is standard input, which can be one of the recordings only: name files for the others");
}

// A recording twice is one run, whose variance would look too small.
absl::Status CheckRunsDiffer(std::span<const Recording> recordings) {
  if (recordings.size() == 2) return absl::OkStatus();  // a warning of DifferingSettings
  std::map<std::string, std::string> files;             // by stream
  for (const Recording& recording : recordings) {
    const auto& session = recording.timetable().session();
    if (!session || session->stream_id().empty()) continue;
    const auto [known, is_new] = files.emplace(session->stream_id(), recording.Name());
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(known->second, " and ", recording.Name(),
                     " are the same recording, and so the same run: name each run once"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Comparison> CompareTimelines(std::span<const std::string> before,
                                            std::span<const std::string> after,
                                            const CompareOptions& options) {
  if (absl::Status status = CheckSides(before, after); !status.ok()) return status;
  const size_t count = before.size() + after.size();
  std::vector<Recording> recordings;  // A's, then B's
  for (size_t i = 0; i < count; ++i) {
    const bool is_a = i < before.size();
    const size_t number = is_a ? i : i - before.size();
    std::string label = is_a ? "A" : "B";
    if (count > 2) absl::StrAppend(&label, number + 1);
    auto recording = Recording::Open(is_a ? before[number] : after[number], std::move(label));
    if (!recording.ok()) return recording.status();
    recordings.push_back(*std::move(recording));
  }
  if (absl::Status status = CheckRunsDiffer(recordings); !status.ok()) return status;

  auto matched = MatchVms(recordings, options.vm);
  if (!matched.ok()) return matched.status();
  Comparison comparison;
  comparison.between_runs = before.size() >= kFewestRuns;
  comparison.notes = std::move(matched->notes);
  const auto phases = ChoosePhases(recordings, options, comparison.notes);
  if (!phases.ok()) return phases.status();
  for (const auto& phase : *phases) {
    if (phase) comparison.phases.push_back(*phase);
  }
  std::vector<Measured> measured;
  for (size_t i = 0; i < count; ++i) {
    auto of_one = recordings[i].Measure(matched->groups[i], *phases);
    if (!of_one.ok()) return of_one.status();
    measured.push_back(*std::move(of_one));
  }

  NoteUnmatched(*phases, recordings, measured, matched->groups[0], comparison.notes);
  std::vector<std::string> lossy;
  for (const Recording& recording : recordings) {
    if (recording.read().MayLackRecords()) lossy.push_back(recording.label());
  }
  RowMaker rows(options, comparison.between_runs, absl::StrJoin(lossy, " and "));
  for (const SeriesKey& key : KeysOf(measured)) {
    Runs runs;
    std::vector<const VmGroup*> vm;
    std::vector<std::string> lacking;
    for (size_t i = 0; i < count; ++i) {
      vm.push_back(&matched->groups[i][key.group]);
      const auto found = measured[i].series.find(key);
      if (found == measured[i].series.end()) {
        lacking.push_back(recordings[i].label());
      } else {
        runs.push_back(&found->second);
      }
    }
    if (!lacking.empty()) {
      rows.LeaveOut(vm, key.vcpu, (*phases)[key.phase],
                    absl::StrCat("no sample of it in ", Listed(lacking, kNamesListed)));
      continue;
    }
    const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(before.size());
    rows.Add(vm, key.vcpu, (*phases)[key.phase], Runs(runs.begin(), middle),
             Runs(middle, runs.end()));
  }
  for (const LeftOut& left_out : FindLeftOut(recordings, *matched, options.vm, *phases)) {
    rows.LeaveOut(left_out);
  }
  rows.Finish(comparison);
  if (comparison.rows.empty()) {
    return absl::NotFoundError(
        absl::StrCat(count == 2 ? absl::StrCat(recordings[0].Name(), " and ", recordings[1].Name(),
                                               ": no vCPU was sampled in both")
                                : "no vCPU was sampled in all of the recordings",
                     options.phase ? " in that phase" : ""));
  }
  for (size_t i = 0; i < count; ++i) {
    (i < before.size() ? comparison.a : comparison.b)
        .push_back(Describe(recordings[i], measured[i]));
  }
  comparison.warnings = DifferingSettings(recordings, measured);
  return comparison;
}

}  // namespace vcpulse::compare

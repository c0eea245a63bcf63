#include "monitor/compare/compare.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/compare/judging.h"
#include "monitor/compare/matching.h"
#include "monitor/compare/recording.h"

namespace vcpulse::compare {
namespace {

constexpr size_t kNamesListed = 8;  // names in one message
constexpr double kLeastBlock_ns = 1e9;
constexpr uint64_t kSeedsEach = 512;           // more than two for each metric there may ever be
constexpr double kLeastBlockShare = 1.0 / 20;  // of a series that is shorter than 20 s

using Phases = std::vector<std::optional<std::string>>;

std::string NamesText(std::vector<std::string> names) {
  for (std::string& name : names) name = Printable(name);
  return names.empty() ? "no phase was marked"
                       : absl::StrCat("there are: ", Listed(names, kNamesListed));
}

std::vector<std::string> Without(const std::vector<std::string>& names,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> rest;
  std::ranges::copy_if(names, std::back_inserter(rest), [&others](const std::string& name) {
    return std::ranges::find(others, name) == others.end();
  });
  return rest;
}

// The phases to compare; notes tell of those that are in one alone.
absl::StatusOr<Phases> ChoosePhases(const Recording& a, const Recording& b,
                                    const std::optional<std::string>& wanted,
                                    std::vector<std::string>& notes) {
  const std::vector<std::string> of_a = a.timetable().Phases();
  const std::vector<std::string> of_b = b.timetable().Phases();
  if (wanted) {
    for (const Recording* recording : {&a, &b}) {
      const std::vector<std::string> names = recording->timetable().Phases();
      if (std::ranges::find(names, *wanted) != names.end()) continue;
      return absl::NotFoundError(absl::StrCat(recording->Name(), ": phase '", Printable(*wanted),
                                              "' never came; ", NamesText(names)));
    }
    return Phases{*wanted};
  }
  const std::vector<std::string> only_a = Without(of_a, of_b);
  const std::vector<std::string> common = Without(of_a, only_a);
  const auto tell = [&notes](const char* side, const std::vector<std::string>& only) {
    std::vector<std::string> names = only;
    for (std::string& name : names) name = Printable(name);
    if (!names.empty()) {
      notes.push_back(absl::StrCat("phases of ", side, " alone: ", Listed(names, kNamesListed)));
    }
  };
  tell("A", only_a);
  tell("B", Without(of_b, of_a));
  if (!common.empty()) return Phases(common.begin(), common.end());
  if (!of_a.empty() || !of_b.empty()) {
    notes.push_back("no phase is in both, so the whole recordings are compared");
  }
  return Phases{std::nullopt};
}

Seen SeenOf(const Series& series, Metric metric) {
  return {.value = series.total().Value(metric),
          .ticks = series.ticks(),
          .length_ns = series.length_ns()};
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

bool Fits(const check::Selector& selector, const VmGroup& a, const VmGroup& b, uint32_t vcpu) {
  const bool vm = !selector.vm || a.name == *selector.vm || b.name == *selector.vm ||
                  absl::EqualsIgnoreCase(a.uuid, *selector.vm) ||
                  absl::EqualsIgnoreCase(b.uuid, *selector.vm);
  return vm && (selector.vcpus.empty() ||
                std::ranges::any_of(selector.vcpus, [vcpu](const check::IndexRange& range) {
                  return range.first <= vcpu && vcpu <= range.last;
                }));
}

// Compares what both measured of one vCPU in one phase.
class RowMaker {
 public:
  explicit RowMaker(const CompareOptions& options)
      : limits_(options.limits), allow_skip_(options.allow_skip), held_(options.limits.size()) {}

  void Add(const VmGroup& vm_a, const VmGroup& vm_b, uint32_t vcpu,
           const std::optional<std::string>& phase, const Series& a, const Series& b) {
    for (const metric::Info& info : metric::Table()) {
      if (!info.asked) continue;
      const Metric metric = info.metric;
      Row row{.vm = vm_a.label, .vcpu = vcpu, .phase = phase, .metric = metric};
      row.a = SeenOf(a, metric);
      row.b = SeenOf(b, metric);
      // Each row and side has random numbers of its own, the same in each run.
      const uint64_t seed = kSeedsEach * vcpus_ + 2 * static_cast<uint64_t>(metric);
      const auto drawn_a = ResampleSeries(a, metric, seed, row.a);
      const auto drawn_b = ResampleSeries(b, metric, seed + 1, row.b);
      if (row.a.value && row.b.value) row.difference = *row.b.value - *row.a.value;
      if (drawn_a && drawn_b) {
        row.contrast = Clipped(metric, ContrastOf(*drawn_a, *drawn_b, 1));
        row.chance = row.contrast->ChanceBeyond(0);
      }
      for (size_t i = 0; i < limits_.size(); ++i) {
        const Limit& limit = limits_[i];
        const bool fits = limit.metric == metric && Fits(limit.selector, vm_a, vm_b, vcpu) &&
                          (!limit.phase || limit.phase == phase);
        if (!fits) continue;
        std::optional<Contrast> beyond = row.contrast;
        if (beyond && limit.relative) beyond = ContrastOf(*drawn_a, *drawn_b, 1 + limit.value);
        if (NeverBusy(row, a, b)) continue;
        const bool needs_counters =
            !row.difference || metric == Metric::kSpinning || metric == Metric::kProductive;
        held_[i].push_back(HoldAgainst(
            limit, row, beyond, DoubtOf(metric, a, b),
            needs_counters && (a.total().HadNoCounters() || b.total().HadNoCounters())));
      }
      rows_.push_back(std::move(row));
    }
    ++vcpus_;
  }

  void Finish(Comparison& comparison) {
    comparison.rows = std::move(rows_);
    JudgeRows(comparison);
    for (size_t i = 0; i < limits_.size(); ++i) {
      comparison.limits.push_back(Judge(limits_[i], std::move(held_[i]), allow_skip_));
    }
    comparison.outcome = check::WorstOf(comparison.limits, allow_skip_);
  }

 private:
  // An IPC that a vCPU could not have, as it was HALTED throughout in both: no limit is about it.
  static bool NeverBusy(const Row& row, const Series& a, const Series& b) {
    const auto halted = [](const Series& series) {
      return series.total().Value(Metric::kHalted) == 1.0;
    };
    return !metric::InfoOf(row.metric).IsShare() && !row.a.value && !row.b.value && halted(a) &&
           halted(b);
  }

  static Doubt DoubtOf(Metric metric, const Series& a, const Series& b) {
    if (metric != Metric::kHalted && metric != Metric::kSpinning && metric != Metric::kProductive) {
      return {};
    }
    const auto doubt = [metric](const Series& series) {
      metric::Ratio unknown = series.total().Of(Metric::kUnknown);
      // Without counters it says at least that the vCPU was on a CPU, so not HALTED.
      if (metric == Metric::kHalted) unknown.part -= series.total().NoCountersNs();
      return std::max(0.0, unknown.Value().value_or(0));
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
  bool allow_skip_;
  std::vector<std::vector<Held>> held_;  // by limit
  std::vector<Row> rows_;
  uint64_t vcpus_ = 0;  // whose rows were made, in each phase anew
};

// What is in one of them alone, so that nothing is dropped unsaid.
void TellUnmatched(const Phases& phases, const Measured& measured, const Measured& other,
                   const std::vector<VmGroup>& groups, const char* side, const char* missing_in,
                   std::vector<std::string>& notes) {
  std::set<std::string> alone;
  for (const auto& [key, series] : measured.series) {
    if (other.series.contains(key)) continue;
    std::string text = absl::StrCat("VM ", groups[key.group].label, " vCPU ", key.vcpu);
    if (phases[key.phase]) {
      absl::StrAppend(&text, " in phase ", Printable(*phases[key.phase]));
    }
    alone.insert(std::move(text));
  }
  if (alone.empty()) return;
  notes.push_back(
      absl::StrCat("in ", side, " and not in ", missing_in, ": ",
                   Listed(std::vector<std::string>(alone.begin(), alone.end()), kNamesListed)));
}

}  // namespace

absl::StatusOr<Comparison> CompareTimelines(const std::string& path_a, const std::string& path_b,
                                            const CompareOptions& options) {
  if (path_a == "-" && path_b == "-") {
    return absl::InvalidArgumentError(
        "- is standard input, which can be one of the two only: name a file for the other");
  }
  const auto a = Recording::Open(path_a);
  if (!a.ok()) return a.status();
  const auto b = Recording::Open(path_b);
  if (!b.ok()) return b.status();

  auto matched = MatchVms(*a, *b, options.vm);
  if (!matched.ok()) return matched.status();
  Comparison comparison;
  comparison.notes = std::move(matched->notes);
  const auto phases = ChoosePhases(*a, *b, options.phase, comparison.notes);
  if (!phases.ok()) return phases.status();
  for (const auto& phase : *phases) {
    if (phase) comparison.phases.push_back(*phase);
  }
  const auto of_a = a->Measure(matched->a, *phases);
  if (!of_a.ok()) return of_a.status();
  const auto of_b = b->Measure(matched->b, *phases);
  if (!of_b.ok()) return of_b.status();

  TellUnmatched(*phases, *of_a, *of_b, matched->a, "A", "B", comparison.notes);
  TellUnmatched(*phases, *of_b, *of_a, matched->b, "B", "A", comparison.notes);
  RowMaker rows(options);
  for (const auto& [key, series] : of_a->series) {
    const auto other = of_b->series.find(key);
    if (other == of_b->series.end()) continue;
    rows.Add(matched->a[key.group], matched->b[key.group], key.vcpu, (*phases)[key.phase], series,
             other->second);
  }
  rows.Finish(comparison);
  if (comparison.rows.empty()) {
    return absl::NotFoundError(absl::StrCat(a->Name(), " and ", b->Name(),
                                            ": no vCPU was sampled in both",
                                            options.phase ? " in that phase" : ""));
  }
  comparison.a = Describe(*a, *of_a);
  comparison.b = Describe(*b, *of_b);
  comparison.warnings = DifferingSettings(*a, *of_a, *b, *of_b);
  return comparison;
}

}  // namespace vcpulse::compare

#include "monitor/import/intervals.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace vcpulse::importing {
namespace {

void SetTimes(const Table& table, std::optional<uint32_t> cycles_event,
              std::optional<double> max_hz, Interval& interval) {
  const Row& row = table.rows[interval.row];
  const std::optional<uint64_t> cycles = table.CountOf(row, cycles_event);
  const auto length_ns = static_cast<uint64_t>(interval.Length_ns());
  const std::optional<uint64_t> enabled = row.Value(Field::kTimeEnabled);
  const std::optional<uint64_t> running = row.Value(Field::kTimeRunning);
  if (enabled) {
    interval.time_enabled_ns = *enabled;
  } else if (row.Value(Field::kRun)) {
    interval.time_enabled_ns = *row.Value(Field::kRun);
  } else if (cycles && max_hz) {
    const double at_least_ns = static_cast<double>(*cycles) / *max_hz * 1e9;
    interval.time_enabled_ns = at_least_ns < static_cast<double>(length_ns)
                                   ? static_cast<uint64_t>(at_least_ns)
                                   : length_ns;
  } else {
    interval.time_enabled_ns = length_ns;
  }
  interval.time_running_ns = running.value_or(interval.time_enabled_ns);
  interval.time_enabled_ns = std::max(interval.time_enabled_ns, interval.time_running_ns);
}

}  // namespace

void Lengths::Add(int64_t length_ns) {
  constexpr size_t kMostDifferent = 65536;
  ++count_;
  ++counts_[length_ns / unit_ns_ * unit_ns_];
  while (counts_.size() > kMostDifferent) {
    unit_ns_ *= 2;
    std::map<int64_t, uint64_t> coarser;
    for (const auto& [length, count] : counts_) coarser[length / unit_ns_ * unit_ns_] += count;
    counts_ = std::move(coarser);
  }
}

int64_t Lengths::Median_ns() const {
  uint64_t before = 0;
  for (const auto& [length_ns, count] : counts_) {
    before += count;
    if (before > count_ / 2) return length_ns;
  }
  return 0;
}

void Survey::Add(const Table& table, const std::vector<Interval>& intervals) {
  for (const Interval& interval : intervals) {
    const Row& row = table.rows[interval.row];
    LookAtTick(row, interval);
    ++found;
    if (SaysNothing(table, row)) {
      ++says_nothing;
      continue;
    }
    const bool first = vms.empty();
    begin_ns = first ? interval.begin_ns : std::min(begin_ns, interval.begin_ns);
    end_ns = std::max(end_ns, interval.end_ns);
    vms.insert(interval.vm);
    lengths.Add(interval.Length_ns());
    LookAtCounts(table, row, interval);
  }
}

void Survey::LookAtTick(const Row& row, const Interval& interval) {
  if (!ticks_agree_) return;
  const std::optional<uint64_t> own = row.Value(Field::kTick);
  if (own && *own != tick_) seen_.clear();
  ticks_agree_ =
      own && *own != 0 && *own >= tick_ && seen_.emplace(interval.vm, interval.vcpu).second;
  tick_ = own.value_or(0);
}

void Survey::LookAtCounts(const Table& table, const Row& row, const Interval& interval) {
  constexpr double kMostCycles_hz = 10e9;
  constexpr double kMostInstructionsPerCycle = 20;
  constexpr double kTooFewToTell = 100'000;
  const std::optional<uint64_t> cycles = table.CountOf(row, table.FindEvent("cycles"));
  const std::optional<uint64_t> instructions = table.CountOf(row, table.FindEvent("instructions"));
  const auto length_ns = static_cast<double>(interval.Length_ns());
  if (cycles.value_or(0) > 0 && length_ns > 0) {
    highest_rate =
        std::max(highest_rate.value_or(0), static_cast<double>(*cycles) * 1e9 / length_ns);
  }
  // Counts that no CPU makes are imported as they are, and reported.
  const double most_cycles = length_ns * kMostCycles_hz / 1e9;
  const double most_instructions =
      kMostInstructionsPerCycle *
      (cycles ? std::min(most_cycles, static_cast<double>(*cycles)) : most_cycles);
  if (static_cast<double>(cycles.value_or(0)) <= most_cycles + kTooFewToTell &&
      static_cast<double>(instructions.value_or(0)) <= most_instructions + kTooFewToTell) {
    return;
  }
  if (impossible++ == 0) first_impossible = row.number;
}

bool SaysNothing(const Table& table, const Row& row) {
  return !row.Value(Field::kTimeEnabled) && !row.Value(Field::kTimeRunning) &&
         !row.Value(Field::kRun) && table.LayoutOf(row).events.empty();
}

void Prepare(const Table& table, const Survey& survey, std::optional<double> max_hz,
             std::vector<Interval>& intervals) {
  const std::optional<double> rate = max_hz ? max_hz : survey.highest_rate;
  const std::optional<uint32_t> cycles = table.FindEvent("cycles");
  for (Interval& interval : intervals) {
    SetTimes(table, cycles, rate, interval);
    if (survey.by_tick()) {
      interval.instant = table.rows[interval.row].Value(Field::kTick).value_or(0);
    }
  }
  std::ranges::stable_sort(intervals, {}, [](const Interval& interval) {
    return std::tuple(interval.instant, interval.vm, interval.vcpu);
  });
}

std::vector<std::string> Substitutions(const FieldSet& present, bool cycles_counted,
                                       bool max_hz_known) {
  std::vector<std::string> notes;
  if (!Has(present, Field::kTimeEnabled)) {
    std::string stands =
        "the whole interval stands for it: nothing shows that a vCPU was off its "
        "CPU";
    if (Has(present, Field::kRun)) {
      stands = "run_ns stands for it";
    } else if (cycles_counted) {
      stands = absl::StrCat("the time that its cycles take at ",
                            max_hz_known ? "--max-hz" : "the highest rate of any row",
                            " stands for it, a lower bound");
    }
    notes.push_back("time_enabled_ns is absent; " + stands);
  }
  if (!Has(present, Field::kTimeRunning)) {
    notes.emplace_back(
        "time_running_ns is absent; time_enabled_ns stands for it: counters that were always on "
        "the PMU");
  }
  const bool run = Has(present, Field::kRun);
  const bool run_delay = Has(present, Field::kRunDelay);
  if (run_delay && !run) notes.emplace_back("run_ns is absent; the time enabled stands for it");
  if (run && !run_delay) {
    notes.emplace_back("run_ns is not kept without run_delay_ns: they come from one place");
  }
  return notes;
}

}  // namespace vcpulse::importing

#include "monitor/import/intervals.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::importing {
namespace {

// Intervals of one vCPU may overlap by so much: stamps are taken beside the counters.
constexpr int64_t kStampBlur_ns = 100'000;

absl::Status RowError(const Table& table, const Row& row, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(table.name, ": ", table.unit, " ", row.number, ToAbsl(what)));
}

// Beyond what stamps and the scheduler's bookings blur: a hundredth or `blur_ns`.
bool IsLonger(uint64_t time_ns, uint64_t length_ns, uint64_t blur_ns) {
  return time_ns > length_ns + std::max(length_ns / 100, blur_ns);
}

// A time on a CPU cannot exceed the interval. (A wait may: it is booked when it ends.)
absl::Status CheckTimes(const Table& table, const Row& row, uint64_t length_ns) {
  struct Time {
    Field field;
    std::string_view column;
    uint64_t blur_ns;
  };
  for (const Time& time : {Time{Field::kTimeEnabled, "time_enabled_ns", 100'000},
                           Time{Field::kRun, "run_ns", 20'000'000}}) {
    const uint64_t value = row.Value(time.field).value_or(0);
    if (!IsLonger(value, length_ns, time.blur_ns)) continue;
    return RowError(table, row,
                    absl::StrCat(", column ", ToAbsl(time.column), ": ", value,
                                 " is more than the interval, which is ", length_ns));
  }
  const std::optional<uint64_t> enabled = row.Value(Field::kTimeEnabled);
  const std::optional<uint64_t> running = row.Value(Field::kTimeRunning);
  if (enabled && running && *running > *enabled) {
    return RowError(table, row,
                    absl::StrCat(", column time_running_ns: ", *running,
                                 " is more than time_enabled_ns, which is ", *enabled));
  }
  return absl::OkStatus();
}

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

auto OrderOf(const Interval& interval) {
  return std::tuple(interval.end_ns, interval.vm, interval.vcpu);
}

absl::Status CheckRepeated(const Table& table, const std::vector<Interval>& sorted) {
  const auto again = std::ranges::adjacent_find(
      sorted, [](const Interval& a, const Interval& b) { return OrderOf(a) == OrderOf(b); });
  if (again == sorted.end()) return absl::OkStatus();
  const Row& first = table.rows[again->row];
  const Row& second = table.rows[(again + 1)->row];
  return RowError(
      table, second,
      absl::StrCat(", column t_ns: ", again->end_ns, " repeats ", table.unit, " ", first.number,
                   " of the same VM and vCPU: where two VMs have one name, vm_number, vm_pid "
                   "or vm_uuid tells them apart"));
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

absl::Status IntervalFinder::Take(const Table& table, size_t first) {
  for (size_t i = first; i < table.rows.size(); ++i) {
    const Row& row = table.rows[i];
    const auto vcpu = static_cast<uint32_t>(row.Value(Field::kVcpu).value_or(0));
    uint64_t& end = last_taken_[{row.vm, vcpu}];
    if (const std::optional<uint64_t> t = row.Value(Field::kT)) {
      end = *t;
    } else if (const std::optional<uint64_t> dt = row.Value(Field::kDt)) {
      end += *dt;
      if (end >= kMaxTime_ns) {
        return RowError(table, row, ", column dt_ns: the sum so far is beyond 2^62 ns");
      }
    } else {
      return RowError(table, row,
                      ": neither t_ns (when the interval ended) nor dt_ns (how long it was) is "
                      "given: one of them is needed");
    }
    if (static_cast<int64_t>(end) <= released_ns_) {
      return absl::OutOfRangeError(absl::StrCat(
          table.name, ": ", table.unit, " ", row.number, ": ends at ", end, " ns, before ",
          table.unit, "s more than ", window_, " above it: sort the file by time"));
    }
    waiting_.push_back({.row = i, .vm = row.vm, .vcpu = vcpu, .end_ns = static_cast<int64_t>(end)});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Interval>> IntervalFinder::Release(const Table& table, bool last,
                                                              bool by_tick) {
  std::ranges::stable_sort(waiting_, {}, OrderOf);
  if (absl::Status status = CheckRepeated(table, waiting_); !status.ok()) return status;
  const auto tick_of = [&table](const Interval& interval) {
    return table.rows[interval.row].Value(Field::kTick);
  };
  size_t cut = last ? waiting_.size() : waiting_.size() - std::min(waiting_.size(), window_);
  while (cut > 0 && cut < waiting_.size() &&
         (waiting_[cut - 1].end_ns == waiting_[cut].end_ns ||
          (by_tick && tick_of(waiting_[cut - 1]) == tick_of(waiting_[cut])))) {
    --cut;
  }
  std::vector<Interval> released;
  for (Interval& interval : std::span(waiting_).first(cut)) {
    const Row& row = table.rows[interval.row];
    const std::optional<uint64_t> dt = row.Value(Field::kDt);
    const auto [before, is_first] =
        last_released_.try_emplace({interval.vm, interval.vcpu}, interval.end_ns);
    interval.instant = static_cast<uint64_t>(interval.end_ns);
    interval.begin_ns = dt ? interval.end_ns - static_cast<int64_t>(*dt) : before->second;
    const int64_t overlap_ns = is_first ? 0 : before->second - interval.begin_ns;
    const int64_t blur_ns = std::max<int64_t>(interval.Length_ns() / 100, kStampBlur_ns);
    if (overlap_ns > blur_ns) {
      return RowError(table, row,
                      absl::StrCat(", column dt_ns: the interval begins ", overlap_ns,
                                   " ns before its vCPU's one before it ended"));
    }
    before->second = interval.end_ns;
    if (is_first && !dt) {
      ++only_begin_;
      continue;
    }
    const auto length_ns = static_cast<uint64_t>(interval.Length_ns());
    if (absl::Status status = CheckTimes(table, row, length_ns); !status.ok()) return status;
    released.push_back(interval);
  }
  if (cut > 0) released_ns_ = waiting_[cut - 1].end_ns;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(cut));
  return released;
}

void IntervalFinder::Compact(Table& table) {
  std::ranges::sort(waiting_, {}, &Interval::row);
  std::vector<size_t> places;
  places.reserve(waiting_.size());
  for (Interval& interval : waiting_) {
    places.push_back(interval.row);
    interval.row = places.size() - 1;
  }
  table.KeepRows(places);
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

#include "monitor/import/intervals.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::importing {
namespace {

using VcpuKey = std::pair<uint32_t, uint32_t>;  // (vm, vcpu)

// Intervals of one vCPU may overlap by so much: stamps are taken beside the counters.
constexpr int64_t kStampBlur_ns = 100'000;

// The highest rate of cycles of any row, Hz.
std::optional<double> HighestRate(const Table& table, const std::vector<Interval>& intervals) {
  const std::optional<uint32_t> event = table.FindEvent("cycles");
  std::optional<double> highest;
  for (const Interval& interval : intervals) {
    const std::optional<uint64_t> cycles = table.CountOf(table.rows[interval.row], event);
    if (!cycles || *cycles == 0 || interval.Length_ns() <= 0) continue;
    const double hz =
        static_cast<double>(*cycles) * 1e9 / static_cast<double>(interval.Length_ns());
    highest = std::max(highest.value_or(0), hz);
  }
  return highest;
}

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
  return absl::OkStatus();
}

absl::Status SetTimes(const Table& table, std::optional<uint32_t> cycles_event,
                      std::optional<double> max_hz, Interval& interval) {
  const Row& row = table.rows[interval.row];
  const std::optional<uint64_t> cycles = table.CountOf(row, cycles_event);
  const auto length_ns = static_cast<uint64_t>(interval.Length_ns());
  if (absl::Status status = CheckTimes(table, row, length_ns); !status.ok()) return status;
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
  if (enabled && running && *running > *enabled) {
    return RowError(table, row,
                    absl::StrCat(", column time_running_ns: ", *running,
                                 " is more than time_enabled_ns, which is ", *enabled));
  }
  interval.time_running_ns = running.value_or(interval.time_enabled_ns);
  interval.time_enabled_ns = std::max(interval.time_enabled_ns, interval.time_running_ns);
  return absl::OkStatus();
}

// When each row's interval ended, in the order of the text.
absl::StatusOr<std::vector<Interval>> FindEnds(const Table& table) {
  std::vector<Interval> intervals;
  intervals.reserve(table.rows.size());
  std::map<VcpuKey, uint64_t> last_end;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Row& row = table.rows[i];
    const auto vcpu = static_cast<uint32_t>(row.Value(Field::kVcpu).value_or(0));
    uint64_t& end = last_end[{row.vm, vcpu}];
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
    intervals.push_back(
        {.row = i, .vm = row.vm, .vcpu = vcpu, .end_ns = static_cast<int64_t>(end)});
  }
  return intervals;
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

// Makes a tick's number the instant of its intervals, where that changes the order of time by
// nothing: each tick's last row ends before the first of the next.
void JoinByTick(const Table& table, Intervals& intervals) {
  uint64_t tick = 0;
  bool first = true;
  std::set<VcpuKey> seen;  // in this tick
  for (const Interval& interval : intervals.all) {
    const std::optional<uint64_t> own = table.rows[interval.row].Value(Field::kTick);
    if (!own || *own == 0 || (!first && *own < tick)) return;
    if (*own != tick || first) seen.clear();
    if (!seen.emplace(interval.vm, interval.vcpu).second) return;
    tick = *own;
    first = false;
  }
  intervals.by_tick = !first;
  if (!intervals.by_tick) return;
  for (Interval& interval : intervals.all) {
    interval.instant = *table.rows[interval.row].Value(Field::kTick);
  }
  std::ranges::stable_sort(intervals.all, {}, [](const Interval& interval) {
    return std::tuple(interval.instant, interval.vm, interval.vcpu);
  });
}

}  // namespace

int64_t Intervals::Median_ns() const {
  std::vector<int64_t> lengths;
  lengths.reserve(all.size());
  for (const Interval& interval : all) lengths.push_back(interval.Length_ns());
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, middle);
  return *middle;
}

absl::StatusOr<Intervals> FindIntervals(const Table& table, std::optional<double> max_hz) {
  absl::StatusOr<std::vector<Interval>> ends = FindEnds(table);
  if (!ends.ok()) return ends.status();
  std::ranges::stable_sort(*ends, {}, OrderOf);
  if (absl::Status status = CheckRepeated(table, *ends); !status.ok()) return status;

  Intervals intervals;
  std::map<VcpuKey, int64_t> last_end;
  for (Interval& interval : *ends) {
    const std::optional<uint64_t> dt = table.rows[interval.row].Value(Field::kDt);
    const auto [before, is_first] =
        last_end.try_emplace({interval.vm, interval.vcpu}, interval.end_ns);
    interval.instant = static_cast<uint64_t>(interval.end_ns);
    interval.begin_ns = dt ? interval.end_ns - static_cast<int64_t>(*dt) : before->second;
    const int64_t overlap_ns = is_first ? 0 : before->second - interval.begin_ns;
    const int64_t blur_ns = std::max<int64_t>(interval.Length_ns() / 100, kStampBlur_ns);
    if (overlap_ns > blur_ns) {
      return RowError(table, table.rows[interval.row],
                      absl::StrCat(", column dt_ns: the interval begins ", overlap_ns,
                                   " ns before its vCPU's one before it ended"));
    }
    before->second = interval.end_ns;
    if (is_first && !dt) {
      ++intervals.only_begin;
      continue;
    }
    intervals.all.push_back(interval);
  }
  const std::optional<double> rate = max_hz ? max_hz : HighestRate(table, intervals.all);
  const std::optional<uint32_t> cycles = table.FindEvent("cycles");
  for (Interval& interval : intervals.all) {
    if (absl::Status status = SetTimes(table, cycles, rate, interval); !status.ok()) return status;
  }
  JoinByTick(table, intervals);
  return intervals;
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

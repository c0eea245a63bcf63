#include "monitor/import/interval_window.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

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
                           Time{Field::kTimeRunning, "time_running_ns", 100'000},
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

absl::StatusOr<uint64_t> ScanIntervals(RowReader& reader, size_t window, bool by_tick,
                                       const std::function<void(std::span<const Row>)>& rows,
                                       const IntervalSink& sink) {
  IntervalFinder finder(window);
  Table& table = reader.table();
  for (bool more = true; more;) {
    const size_t first = table.rows.size();
    const absl::StatusOr<bool> read = reader.Read(window);
    if (!read.ok()) return read.status();
    more = *read;
    rows(std::span(table.rows).subspan(first));
    absl::Status status = finder.Take(table, first);
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<Interval>> released = finder.Release(table, !more, by_tick);
    if (!released.ok()) return released.status();
    status = sink(*std::move(released));
    if (!status.ok()) return status;
    finder.Compact(table);
  }
  return finder.only_begin();
}

}  // namespace vcpulse::importing

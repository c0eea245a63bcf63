#include "monitor/rollup/windows.h"

#include <algorithm>
#include <limits>
#include <variant>

namespace vcpulse::rollup {
namespace {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();
// Beyond it, and before 1970, a clock is damaged; sums with a window's length do not overflow.
constexpr int64_t kLatestClock_ns = kNever_ns / 2;
constexpr size_t kKeptEpochs = 100;  // per VM

}  // namespace

Windows::Windows(const std::vector<int64_t>& lengths_ns, Sink sink)
    : sink_(std::move(sink)), first_end_ns_(kNever_ns - kPatience_ns) {
  for (const int64_t length_ns : lengths_ns) {
    levels_.push_back({.length_ns = length_ns, .open = {}});
  }
}

absl::Status Windows::Add(const timeline::Entry& entry) {
  if (const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    clocks_.Take(*snapshot);
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    ForgetEpochs(set->vm());
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    // Nothing was to be sampled meanwhile.
    if (change->kind() == v1::LifeCycle::KIND_RECORDING_RESUMED) {
      for (auto& [key, vcpu] : vcpus_) vcpu.sampled_until_ns.reset();
    }
  }
  return intervals_.Add(entry,
                        [this](const metric::Interval& interval) { return AddInterval(interval); });
}

absl::Status Windows::Finish() { return CloseUntil(kNever_ns); }

absl::Status Windows::AddInterval(const metric::Interval& interval) {
  Column& column = ColumnsOf(interval.epoch)[interval.column];
  Vcpu& vcpu = *column.vcpu;
  const int64_t begin_ns = interval.BeginNs();
  const int64_t end_ns = interval.EndNs();
  const bool holds = !interval.misses_ticks;
  vcpu.spin.Add(begin_ns, end_ns, holds && interval.verdict.band == core::Band::kSpinning);
  vcpu.starved.Add(begin_ns, end_ns, holds && interval.Starved().value_or(false));
  const int64_t gap_ns = std::max<int64_t>(0, begin_ns - vcpu.sampled_until_ns.value_or(begin_ns));
  vcpu.sampled_until_ns = std::max(end_ns, vcpu.sampled_until_ns.value_or(end_ns));

  const std::optional<int64_t> realtime_ns = clocks_.Realtime(end_ns);
  if (!realtime_ns || *realtime_ns < 0 || *realtime_ns > kLatestClock_ns) {
    ++undated_intervals_;
    return absl::OkStatus();
  }
  if (absl::Status status = PassTo(*realtime_ns); !status.ok()) return status;
  for (size_t level = 0; level < levels_.size(); ++level) {
    Row& row = RowOf(column, level, *realtime_ns);
    row.Add(interval);
    row.gap_ns += gap_ns;
    row.longest_spin_ns = std::max(row.longest_spin_ns, vcpu.spin.running_ns());
    row.longest_starvation_ns = std::max(row.longest_starvation_ns, vcpu.starved.running_ns());
  }
  return absl::OkStatus();
}

absl::Status Windows::PassTo(int64_t realtime_ns) {
  const bool went_back = latest_ns_ && realtime_ns < *latest_ns_ - kPatience_ns;
  latest_ns_ = went_back ? realtime_ns : std::max(realtime_ns, latest_ns_.value_or(realtime_ns));
  if (went_back) return CloseUntil(kNever_ns);
  if (*latest_ns_ < first_end_ns_ + kPatience_ns) return absl::OkStatus();
  return CloseUntil(*latest_ns_ - kPatience_ns);
}

// Gives the windows that end then or before.
absl::Status Windows::CloseUntil(int64_t realtime_ns) {
  for (auto& [key, columns] : columns_) {
    for (Column& column : columns) std::ranges::fill(column.rows, nullptr);
  }
  first_end_ns_ = kNever_ns - kPatience_ns;
  for (size_t level = 0; level < levels_.size(); ++level) {
    auto& [length_ns, open] = levels_[level];
    while (!open.empty() && open.begin()->first + length_ns <= realtime_ns) {
      for (const auto& [key, row] : open.begin()->second) {
        if (absl::Status status = sink_(level, row); !status.ok()) return status;
      }
      open.erase(open.begin());
    }
    if (!open.empty()) first_end_ns_ = std::min(first_end_ns_, open.begin()->first + length_ns);
  }
  return absl::OkStatus();
}

std::vector<Windows::Column>& Windows::ColumnsOf(const metric::Epoch& epoch) {
  std::vector<Column>& columns = columns_[{epoch.set.vm(), epoch.set.epoch()}];
  if (!columns.empty()) return columns;
  const v1::Session session = intervals_.session().value_or(v1::Session());
  for (int i = 0; i < epoch.set.vcpus_size(); ++i) {
    auto subject =
        std::make_shared<const Subject>(Subject::Of(session, epoch, static_cast<size_t>(i)));
    Vcpu& vcpu = vcpus_[{subject->vm, subject->vcpu}];
    columns.push_back(
        {.subject = std::move(subject), .vcpu = &vcpu, .rows = std::vector<Row*>(levels_.size())});
  }
  return columns;
}

Row& Windows::RowOf(Column& column, size_t level, int64_t realtime_ns) {
  Row*& latest = column.rows[level];
  const int64_t length_ns = levels_[level].length_ns;
  if (latest != nullptr && latest->window_start_ns <= realtime_ns &&
      realtime_ns - latest->window_start_ns < length_ns) {
    return *latest;
  }
  const int64_t begin_ns = realtime_ns - realtime_ns % length_ns;
  const Subject& subject = *column.subject;
  Row& row = levels_[level].open[begin_ns][{subject.vm, subject.vcpu, subject.epoch}];
  if (row.subject == nullptr) {
    row.subject = column.subject;
    row.window_start_ns = begin_ns;
    row.window_ns = length_ns;
    first_end_ns_ = std::min(first_end_ns_, begin_ns + length_ns);
  }
  latest = &row;
  return row;
}

// Rows keep what they need of an epoch.
void Windows::ForgetEpochs(uint32_t vm) {
  const auto first = columns_.lower_bound({vm, 0});
  const auto end = columns_.upper_bound({vm, std::numeric_limits<uint32_t>::max()});
  if (static_cast<size_t>(std::distance(first, end)) <= kKeptEpochs) return;
  intervals_.EndEpoch(vm, first->first.second);
  columns_.erase(first);
}

}  // namespace vcpulse::rollup

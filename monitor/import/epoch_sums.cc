#include "monitor/import/epoch_sums.h"

#include <algorithm>
#include <optional>

namespace vcpulse::importing {
namespace {

// How far an interval may begin from the end of the one before.
constexpr int64_t kSlack_ns = 100'000;
constexpr int64_t kSlackShare = 100;  // one of so many parts of the interval

bool Joins(int64_t last_end_ns, const Interval& next) {
  const int64_t slack = std::max(kSlack_ns, next.Length_ns() / kSlackShare);
  const int64_t off = next.begin_ns - last_end_ns;
  return off <= slack && off >= -slack;
}

// Adds to a sum; false where it would pass 2^64.
bool AddTo(uint64_t& sum, uint64_t value) { return !__builtin_add_overflow(sum, value, &sum); }

const Row& RowOf(const Table& table, const Interval& interval) { return table.rows[interval.row]; }

// Adds one row to the sums of its vCPU; false where one would pass 2^64.
bool AddRow(const Table& table, const Epoch& epoch, const Interval& interval,
            core::VcpuSample& sample, std::span<core::GroupSample> further) {
  const Row& row = RowOf(table, interval);
  sample.read_begin_ns = sample.read_end_ns = interval.end_ns;
  sample.state = row.state;
  bool fits = true;
  for (size_t g = 0; g <= further.size(); ++g) {
    uint64_t enabled_ns = interval.time_enabled_ns;
    uint64_t running_ns = interval.time_running_ns;
    if (const auto timed_by = epoch.groups->groups[g].timed_by; timed_by && !table.shares.empty()) {
      const double share = table.shares[row.first_count + *timed_by];
      if (share < 0) enabled_ns = 0;  // its group never ran
      running_ns = static_cast<uint64_t>(share * static_cast<double>(enabled_ns) + 0.5);
      running_ns = std::min(running_ns, enabled_ns);
    }
    fits = AddTo(g == 0 ? sample.time_enabled_ns : further[g - 1].time_enabled_ns, enabled_ns) &&
           AddTo(g == 0 ? sample.time_running_ns : further[g - 1].time_running_ns, running_ns) &&
           fits;
  }
  const std::span<const uint64_t> counts = table.CountsOf(row);
  for (size_t i = 0; i < counts.size(); ++i) {
    const EventGroups::Place& place = epoch.groups->places[i];
    auto& sums = place.group == 0 ? sample.counts : further[place.group - 1].counts;
    fits = AddTo(sums[place.slot], counts[i]) && fits;
  }
  const std::optional<uint64_t> run_delay = row.Value(Field::kRunDelay);
  sample.has_scheduler_times = run_delay.has_value();
  if (run_delay) {
    const uint64_t run = row.Value(Field::kRun).value_or(interval.time_enabled_ns);
    fits = AddTo(sample.run_ns, run) && AddTo(sample.run_delay_ns, *run_delay) && fits;
  }
  return fits;
}

}  // namespace

Cells CellsOf(const Row& row) {
  return {.layout = row.layout,
          .times = (row.present >> kFirstTime).to_ulong(),
          .epoch = row.Value(Field::kEpoch).value_or(0)};
}

VcpuThread ThreadOf(const Row& row, uint32_t vcpu) {
  return {.vcpu = vcpu, .tid = row.Value(Field::kTid), .kvm_id = row.Value(Field::kKvmId)};
}

bool Continue(const Table& table, const Epoch& epoch, std::span<const Interval> group,
              uint64_t tick, core::Sample& sample) {
  if (epoch.cells != CellsOf(RowOf(table, group.front()))) return false;
  if (epoch.vcpus.size() != group.size()) return false;
  sample = epoch.last;
  sample.tick = tick;
  sample.wake_ns = std::ranges::min_element(group, {}, &Interval::end_ns)->end_ns;
  sample.deadline_ns = sample.wake_ns;
  const size_t further = epoch.groups->groups.size() - 1;
  for (size_t i = 0; i < group.size(); ++i) {
    if (epoch.vcpus[i] != ThreadOf(RowOf(table, group[i]), group[i].vcpu)) return false;
    core::VcpuSample& vcpu = sample.vcpus[i];
    if (!Joins(vcpu.read_end_ns, group[i]) ||
        !AddRow(table, epoch, group[i], vcpu,
                std::span(sample.further).subspan(i * further, further))) {
      return false;
    }
  }
  return true;
}

}  // namespace vcpulse::importing

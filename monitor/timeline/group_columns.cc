#include "monitor/timeline/group_columns.h"

#include "kvm/counters/read_format.h"
#include "monitor/timeline/column_codec.h"

namespace vcpulse::timeline {
namespace {

template <typename Column>
struct Columns {
  Column time_enabled, not_running;
  std::array<Column, core::kMaxEvents> counts{};
};

// Codes one group of one vCPU in one row. `now` is read (Encode) or filled (Decode).
template <typename Direction>
void CodeGroup(const Columns<typename Direction::Column>& columns, size_t events, size_t i,
               bool first, uint64_t main_enabled_ns, GroupState& state, core::GroupSample& now) {
  const core::GroupSample& last = state.last;
  uint64_t enabled = now.time_enabled_ns - last.time_enabled_ns;
  Direction::Code(main_enabled_ns, enabled, columns.time_enabled[i]);
  now.time_enabled_ns = last.time_enabled_ns + enabled;

  uint64_t not_running = enabled - (now.time_running_ns - last.time_running_ns);
  Direction::Code(state.not_running_ns, not_running, columns.not_running[i]);
  const uint64_t running = enabled - not_running;
  now.time_running_ns = last.time_running_ns + running;

  CodeCounts<Direction>(std::span(columns.counts).first(events), i,
                        Proportion(state.time_running_ns, running), last.counts, state.counts,
                        now.counts);
  state.not_running_ns = first ? 0 : not_running;
  state.time_running_ns = running;
  state.last = now;
}

absl::Status DoNotFit() {
  return absl::DataLossError("the columns of further groups do not fit their vCPU set");
}

static_assert(core::kMaxGroups >= kvm::kMaxVcpuGroups, "what is opened can be written");

}  // namespace

std::vector<size_t> FurtherEvents(const v1::VcpuSet& set) {
  std::vector<size_t> events;
  for (const v1::EventGroup& group : set.further_groups()) {
    events.push_back(static_cast<size_t>(group.events_size()));
  }
  return events;
}

void EncodeGroups(std::span<const core::GroupSample> further, std::span<const uint64_t> enabled_ns,
                  size_t vcpus, std::span<const size_t> events, v1::VmTicks* out) {
  out->clear_further_groups();
  const size_t size = enabled_ns.size();
  const size_t rows = vcpus == 0 ? 0 : size / vcpus;
  for (size_t g = 0; g < events.size(); ++g) {
    v1::GroupColumns* group = out->add_further_groups();
    Columns<int64_t*> columns{.time_enabled = Prepare(group->mutable_time_enabled_ns(), size),
                              .not_running = Prepare(group->mutable_not_running_ns(), size)};
    for (size_t e = 0; e < events[g]; ++e) {
      columns.counts[e] = Prepare(group->add_counts()->mutable_count(), size);
    }
    for (size_t v = 0; v < vcpus; ++v) {
      GroupState state;
      uint64_t enabled_before = 0;
      for (size_t t = 0; t < rows; ++t) {
        const size_t row = t * vcpus + v;
        core::GroupSample now = further[row * events.size() + g];
        CodeGroup<Encode>(columns, events[g], v * rows + t, t == 0,
                          enabled_ns[row] - enabled_before, state, now);
        enabled_before = enabled_ns[row];
      }
    }
  }
}

absl::Status CheckGroups(const v1::VmTicks& columns, size_t size, std::span<const size_t> events) {
  const auto is = [](int actual, size_t wanted) { return static_cast<size_t>(actual) == wanted; };
  if (!is(columns.further_groups_size(), events.size())) return DoNotFit();
  if (events.size() >= core::kMaxGroups)
    return absl::DataLossError("a vCPU set of too many groups");
  for (size_t g = 0; g < events.size(); ++g) {
    const v1::GroupColumns& group = columns.further_groups(static_cast<int>(g));
    if (events[g] > core::kMaxEvents || !is(group.counts_size(), events[g]) ||
        !is(group.time_enabled_ns_size(), size) || !is(group.not_running_ns_size(), size)) {
      return DoNotFit();
    }
    for (const v1::EventColumn& column : group.counts()) {
      if (!is(column.count_size(), size)) return DoNotFit();
    }
  }
  return absl::OkStatus();
}

core::GroupSample DecodeGroup(const v1::GroupColumns& columns, size_t events, size_t i, bool first,
                              uint64_t enabled_ns, GroupState& state) {
  Columns<const int64_t*> in{.time_enabled = columns.time_enabled_ns().data(),
                             .not_running = columns.not_running_ns().data()};
  for (size_t e = 0; e < events; ++e) {
    in.counts[e] = columns.counts(static_cast<int>(e)).count().data();
  }
  core::GroupSample now;
  CodeGroup<Decode>(in, events, i, first, enabled_ns, state, now);
  return now;
}

}  // namespace vcpulse::timeline

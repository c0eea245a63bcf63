#include "monitor/timeline/tick_columns.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/timeline/column_codec.h"

namespace vcpulse::timeline {
namespace {

using VcpuState = ColumnReader::VcpuState;

// Columns are vCPU-major and rows are handed out: so many samples are decoded at a time, which
// fits a second-level cache.
constexpr size_t kBlockSamples = 1024;

// The per-vCPU columns of sint64.
template <typename Column>
struct VcpuColumns {
  Column read_begin, read, time_enabled, not_running, run, run_delay;
  std::array<Column, core::kMaxEvents> counts{};
};

// What to expect of a value that was `before` where another one that it may be a part of went from
// `whole_before` to `whole`: it follows where it was half of the whole or more.
uint64_t Follow(uint64_t before, uint64_t whole_before, uint64_t whole) {
  return before >= whole_before / 2 ? before + (whole - whole_before) : before;
}

// Codes one vCPU of one row at entry `i`; `first` is row 0, `after` is what read_begin counts from.
// `now` is read (Encode) or filled (Decode). timeline.proto is the specification.
template <typename Direction>
void CodeRow(const VcpuColumns<typename Direction::Column>& columns, size_t events, size_t i,
             bool first, int64_t after, VcpuState& state, core::VcpuSample& now) {
  const core::VcpuSample& last = state.last;

  uint64_t begin = Bits(now.read_begin_ns);
  Direction::Code(Bits(after), begin, columns.read_begin[i]);
  uint64_t read = Bits(now.read_end_ns) - begin;
  Direction::Code(state.read_ns, read, columns.read[i]);
  now.read_begin_ns = Signed(begin);
  now.read_end_ns = Signed(begin + read);

  const uint64_t interval = first ? 0 : begin + read - Bits(last.read_end_ns);
  uint64_t enabled = now.time_enabled_ns - last.time_enabled_ns;
  Direction::Code(Follow(state.time_enabled_ns, state.interval_ns, interval), enabled,
                  columns.time_enabled[i]);
  now.time_enabled_ns = last.time_enabled_ns + enabled;

  uint64_t not_running = enabled - (now.time_running_ns - last.time_running_ns);
  Direction::Code(state.not_running_ns, not_running, columns.not_running[i]);
  const uint64_t running = enabled - not_running;
  now.time_running_ns = last.time_running_ns + running;

  const uint64_t off_cpu = first ? 0 : interval - enabled;
  uint64_t run_delay = state.run_delay_ns;
  if (now.has_scheduler_times) {
    uint64_t run = now.run_ns - last.run_ns;
    Direction::Code(enabled, run, columns.run[i]);
    now.run_ns = last.run_ns + run;
    run_delay = now.run_delay_ns - last.run_delay_ns;
    Direction::Code(Follow(state.run_delay_ns, state.off_cpu_ns, off_cpu), run_delay,
                    columns.run_delay[i]);
    now.run_delay_ns = last.run_delay_ns + run_delay;
  }

  CodeCounts<Direction>(std::span(columns.counts).first(events), i,
                        Proportion(state.time_running_ns, running), last.counts, state.counts,
                        now.counts);

  state.interval_ns = interval;
  state.off_cpu_ns = off_cpu;
  state.read_ns = read;
  state.time_running_ns = running;
  state.time_enabled_ns = first ? 0 : enabled;
  state.not_running_ns = first ? 0 : not_running;
  state.run_delay_ns = first ? 0 : run_delay;
  const std::pair scheduler_times(last.run_ns, last.run_delay_ns);
  state.last = now;
  if (!now.has_scheduler_times) {
    std::tie(state.last.run_ns, state.last.run_delay_ns) = scheduler_times;
  }
}

VcpuColumns<int64_t*> PrepareColumns(size_t size, size_t events, v1::VmTicks* out) {
  VcpuColumns<int64_t*> columns{
      .read_begin = Prepare(out->mutable_read_begin_ns(), size),
      .read = Prepare(out->mutable_read_ns(), size),
      .time_enabled = Prepare(out->mutable_time_enabled_ns(), size),
      .not_running = Prepare(out->mutable_not_running_ns(), size),
      .run = Prepare(out->mutable_run_ns(), size),
      .run_delay = Prepare(out->mutable_run_delay_ns(), size),
  };
  out->clear_counts();
  for (size_t e = 0; e < events; ++e) {
    columns.counts[e] = Prepare(out->add_counts()->mutable_count(), size);
  }
  return columns;
}

void EncodeHeads(const TickRows& rows, v1::VmTicks* out) {
  const size_t count = rows.heads.size();
  int64_t* sequence = Prepare(out->mutable_sequence(), count);
  int64_t* tick = Prepare(out->mutable_tick(), count);
  int64_t* deadline = Prepare(out->mutable_deadline_mono_ns(), count);
  int64_t* lateness = Prepare(out->mutable_lateness_ns(), count);
  TickRows::Head last;
  for (size_t t = 0; t < count; ++t) {
    const TickRows::Head& head = rows.heads[t];
    sequence[t] = Signed(head.sequence - last.sequence);
    tick[t] = Signed(head.tick - last.tick);
    deadline[t] = Signed(Bits(head.deadline_ns) - Bits(last.deadline_ns));
    lateness[t] = Signed(Bits(head.wake_ns) - Bits(head.deadline_ns));
    last = head;
  }
}

// A value that a later release knows and this one does not reads as `unknown`.
template <typename Enum>
Enum Known(uint32_t value, Enum highest, Enum unknown) {
  return value <= static_cast<uint32_t>(highest) ? static_cast<Enum>(value) : unknown;
}

// The columns that are left empty where they say nothing more.
void EncodeJudgements(const TickRows& rows, v1::VmTicks* out) {
  out->clear_confidence_pct();
  out->clear_raw_band();
  out->clear_raw_rule();
  const auto any = [&rows](auto says_more) {
    return std::ranges::any_of(rows.verdicts, says_more);
  };
  const size_t count = rows.heads.size();
  const size_t size = rows.vcpus * count;
  const auto fill = [&](uint32_t* column, auto value) {
    for (size_t v = 0; v < rows.vcpus; ++v) {
      for (size_t t = 0; t < count; ++t) {
        column[v * count + t] = static_cast<uint32_t>(value(rows.verdicts[t * rows.vcpus + v]));
      }
    }
  };
  if (any([](const core::Verdict& verdict) { return verdict.confidence_pct != 0; })) {
    fill(Prepare(out->mutable_confidence_pct(), size),
         [](const core::Verdict& verdict) { return verdict.confidence_pct; });
  }
  if (any([](const core::Verdict& verdict) { return verdict.raw_band != verdict.band; })) {
    fill(Prepare(out->mutable_raw_band(), size),
         [](const core::Verdict& verdict) { return verdict.raw_band; });
  }
  if (any([](const core::Verdict& verdict) { return verdict.raw_rule != verdict.rule; })) {
    fill(Prepare(out->mutable_raw_rule(), size),
         [](const core::Verdict& verdict) { return verdict.raw_rule; });
  }
}

absl::Status BadColumn(const char* name) {
  return absl::DataLossError(absl::StrCat("column ", name, " does not fit its vCPU set"));
}

}  // namespace

void TickRows::Append(uint64_t sequence, const core::Sample& sample,
                      std::span<const core::Verdict> row_verdicts) {
  heads.push_back({sequence, sample.tick, sample.deadline_ns, sample.wake_ns});
  samples.insert(samples.end(), sample.vcpus.begin(), sample.vcpus.end());
  further.insert(further.end(), sample.further.begin(), sample.further.end());
  verdicts.insert(verdicts.end(), row_verdicts.begin(), row_verdicts.end());
}

void TickRows::StartNextChunk() {
  if (heads.empty()) return;
  heads.erase(heads.begin(), heads.end() - 1);
  samples.erase(samples.begin(), samples.end() - static_cast<ptrdiff_t>(vcpus));
  further.erase(further.begin(),
                further.end() - static_cast<ptrdiff_t>(vcpus * further_events.size()));
  verdicts.erase(verdicts.begin(), verdicts.end() - static_cast<ptrdiff_t>(vcpus));
  has_base = true;
}

void EncodeColumns(const TickRows& rows, v1::VmTicks* out) {
  const size_t count = rows.heads.size();
  const size_t size = rows.vcpus * count;
  out->set_has_base(rows.has_base);
  EncodeHeads(rows, out);
  const VcpuColumns<int64_t*> columns = PrepareColumns(size, rows.events, out);
  uint32_t* state = Prepare(out->mutable_state(), size);
  uint32_t* band = Prepare(out->mutable_band(), size);
  uint32_t* rule = Prepare(out->mutable_rule(), size);
  bool* starved = Prepare(out->mutable_starved(), size);
  out->clear_scheduler_absent();

  size_t last_absent = 0;
  for (size_t v = 0; v < rows.vcpus; ++v) {
    VcpuState before;
    for (size_t t = 0; t < count; ++t) {
      const size_t i = v * count + t;
      const size_t row = t * rows.vcpus + v;
      core::VcpuSample now = rows.samples[row];
      const int64_t after = v == 0 ? rows.heads[t].wake_ns : rows.samples[row - 1].read_end_ns;
      CodeRow<Encode>(columns, rows.events, i, t == 0, after, before, now);
      if (!now.has_scheduler_times) {
        out->add_scheduler_absent(static_cast<uint32_t>(i - last_absent));
        last_absent = i;
      }
      state[i] = static_cast<uint32_t>(now.state);
      band[i] = static_cast<uint32_t>(rows.verdicts[row].band);
      rule[i] = static_cast<uint32_t>(rows.verdicts[row].rule);
      starved[i] = rows.verdicts[row].starved;
    }
  }
  EncodeJudgements(rows, out);
  if (rows.further_events.empty()) return;
  std::vector<uint64_t> enabled_ns;
  enabled_ns.reserve(rows.samples.size());
  for (const core::VcpuSample& sample : rows.samples) enabled_ns.push_back(sample.time_enabled_ns);
  EncodeGroups(rows.further, enabled_ns, rows.vcpus, rows.further_events, out);
}

absl::StatusOr<ColumnReader> ColumnReader::Open(const v1::VmTicks& columns, size_t vcpus,
                                                size_t events,
                                                std::span<const size_t> further_events) {
  const auto rows = static_cast<size_t>(columns.sequence_size());
  const size_t size = vcpus * rows;  // both below 2^31
  const auto is = [](int actual, size_t wanted) { return static_cast<size_t>(actual) == wanted; };

  if (vcpus > kMaxVcpus) return absl::DataLossError("a vCPU set of too many vCPUs");
  if (events > core::kMaxEvents) return absl::DataLossError("a vCPU set of too many events");
  if (rows == 0) return absl::DataLossError("columns without a row");
  if (!is(columns.tick_size(), rows)) return BadColumn("tick");
  if (!is(columns.deadline_mono_ns_size(), rows)) return BadColumn("deadline_mono_ns");
  if (!is(columns.lateness_ns_size(), rows)) return BadColumn("lateness_ns");
  if (!is(columns.read_begin_ns_size(), size)) return BadColumn("read_begin_ns");
  if (!is(columns.read_ns_size(), size)) return BadColumn("read_ns");
  if (!is(columns.time_enabled_ns_size(), size)) return BadColumn("time_enabled_ns");
  if (!is(columns.not_running_ns_size(), size)) return BadColumn("not_running_ns");
  if (!is(columns.run_ns_size(), size)) return BadColumn("run_ns");
  if (!is(columns.run_delay_ns_size(), size)) return BadColumn("run_delay_ns");
  if (!is(columns.counts_size(), events)) return BadColumn("counts");
  for (const v1::EventColumn& column : columns.counts()) {
    if (!is(column.count_size(), size)) return BadColumn("counts");
  }
  if (!is(columns.state_size(), size)) return BadColumn("state");
  if (!is(columns.band_size(), size)) return BadColumn("band");
  if (!is(columns.rule_size(), size)) return BadColumn("rule");
  if (!is(columns.starved_size(), size)) return BadColumn("starved");
  const auto is_or_empty = [&](int actual) { return actual == 0 || is(actual, size); };
  if (!is_or_empty(columns.confidence_pct_size())) return BadColumn("confidence_pct");
  if (!is_or_empty(columns.raw_band_size())) return BadColumn("raw_band");
  if (!is_or_empty(columns.raw_rule_size())) return BadColumn("raw_rule");

  if (absl::Status status = CheckGroups(columns, size, further_events); !status.ok()) return status;

  ColumnReader reader(columns, vcpus, events, further_events);
  size_t absent = 0;
  for (int k = 0; k < columns.scheduler_absent_size(); ++k) {
    const uint32_t distance = columns.scheduler_absent(k);
    absent += distance;  // a sum of less than 2^31 entries of less than 2^32
    if (absent >= size || (k > 0 && distance == 0)) return BadColumn("scheduler_absent");
    reader.scheduler_absent_[absent] = true;
  }
  return reader;
}

ColumnReader::ColumnReader(const v1::VmTicks& columns, size_t vcpus, size_t events,
                           std::span<const size_t> further_events)
    : columns_(&columns),
      vcpus_(vcpus),
      events_(events),
      further_events_(further_events.begin(), further_events.end()),
      rows_(static_cast<size_t>(columns.sequence_size())),
      scheduler_absent_(vcpus * rows_),
      states_(vcpus),
      group_states_(vcpus * further_events.size()) {
  uint64_t sequence = 0;
  sequences_.reserve(rows_);
  for (const int64_t difference : columns.sequence()) {
    sequence += Bits(difference);
    sequences_.push_back(sequence);
  }
}

namespace {

core::Verdict VerdictAt(const v1::VmTicks& in, int entry) {
  constexpr auto kLastRule = core::kRuleTable.back().rule;
  const auto band = [](uint32_t value) {
    return Known(value, core::Band::kUnknown, core::Band::kUnknown);
  };
  core::Verdict verdict{.band = band(in.band(entry)),
                        .rule = Known(in.rule(entry), kLastRule, core::Rule::kNone),
                        .starved = in.starved(entry)};
  if (in.confidence_pct_size() > 0) {
    verdict.confidence_pct = static_cast<uint8_t>(std::min(in.confidence_pct(entry), 100u));
  }
  verdict.raw_band = in.raw_band_size() > 0 ? band(in.raw_band(entry)) : verdict.band;
  verdict.raw_rule = in.raw_rule_size() > 0
                         ? Known(in.raw_rule(entry), kLastRule, core::Rule::kNone)
                         : verdict.rule;
  return verdict;
}

}  // namespace

void ColumnReader::Next(core::Sample* sample, std::vector<core::Verdict>* verdicts) {
  if (block_next_ == block_rows_) DecodeBlock();
  Row& row = block_[block_next_++];
  std::swap(*sample, row.sample);
  std::swap(*verdicts, row.verdicts);
}

void ColumnReader::DecodeBlock() {
  block_rows_ = std::min(rows_ - next_, std::clamp<size_t>(kBlockSamples / (vcpus_ + 1), 1, 32));
  block_next_ = 0;
  if (block_.size() < block_rows_) block_.resize(block_rows_);
  for (size_t k = 0; k < block_rows_; ++k) DecodeHead(next_ + k, block_[k]);

  const v1::VmTicks& in = *columns_;
  VcpuColumns<const int64_t*> columns{
      .read_begin = in.read_begin_ns().data(),
      .read = in.read_ns().data(),
      .time_enabled = in.time_enabled_ns().data(),
      .not_running = in.not_running_ns().data(),
      .run = in.run_ns().data(),
      .run_delay = in.run_delay_ns().data(),
  };
  for (size_t e = 0; e < events_; ++e) {
    columns.counts[e] = in.counts(static_cast<int>(e)).count().data();
  }
  for (size_t v = 0; v < vcpus_; ++v) {
    for (size_t k = 0; k < block_rows_; ++k) {
      const size_t t = next_ + k;
      const size_t i = v * rows_ + t;
      const auto entry = static_cast<int>(i);
      core::Sample& sample = block_[k].sample;
      core::VcpuSample& now = sample.vcpus[v];
      now = {};
      now.has_scheduler_times = !scheduler_absent_[i];
      now.state = Known(in.state(entry), core::ThreadState::kIoWait, core::ThreadState::kNotRead);
      const uint64_t enabled_before = states_[v].last.time_enabled_ns;
      const int64_t after = v == 0 ? sample.wake_ns : sample.vcpus[v - 1].read_end_ns;
      CodeRow<Decode>(columns, events_, i, t == 0, after, states_[v], now);
      for (size_t g = 0; g < further_events_.size(); ++g) {
        const size_t entry_of_group = v * further_events_.size() + g;
        sample.further[entry_of_group] =
            DecodeGroup(in.further_groups(static_cast<int>(g)), further_events_[g], i, t == 0,
                        now.time_enabled_ns - enabled_before, group_states_[entry_of_group]);
      }
      block_[k].verdicts[v] = VerdictAt(in, entry);
    }
  }
  next_ += block_rows_;
}

void ColumnReader::DecodeHead(size_t t, Row& row) {
  const v1::VmTicks& in = *columns_;
  const auto entry = static_cast<int>(t);
  head_.tick += Bits(in.tick(entry));
  head_.deadline_ns = Signed(Bits(head_.deadline_ns) + Bits(in.deadline_mono_ns(entry)));
  head_.wake_ns = Signed(Bits(head_.deadline_ns) + Bits(in.lateness_ns(entry)));
  row.sample.tick = head_.tick;
  row.sample.deadline_ns = head_.deadline_ns;
  row.sample.wake_ns = head_.wake_ns;
  row.sample.vcpus.resize(vcpus_);
  row.sample.further.resize(vcpus_ * further_events_.size());
  row.verdicts.resize(vcpus_);
}

}  // namespace vcpulse::timeline

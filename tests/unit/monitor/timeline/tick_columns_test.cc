#include "monitor/timeline/tick_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;

struct Row {
  uint64_t sequence = 0;
  core::Sample sample;
  std::vector<core::Verdict> verdicts;

  bool operator==(const Row&) const = default;
};

TickRows Buffer(const std::vector<Row>& rows, size_t events) {
  TickRows buffer{.vcpus = rows[0].sample.vcpus.size(), .events = events};
  for (const Row& row : rows) buffer.Append(row.sequence, row.sample, row.verdicts);
  return buffer;
}

std::vector<Row> Decode(const v1::VmTicks& columns, size_t vcpus, size_t events,
                        const std::vector<size_t>& further_events = {}) {
  absl::StatusOr<ColumnReader> reader = ColumnReader::Open(columns, vcpus, events, further_events);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<Row> rows;
  for (size_t t = 0; reader.ok() && t < reader->rows(); ++t) {
    Row& row = rows.emplace_back();
    row.sequence = reader->sequences()[t];
    reader->Next(&row.sample, &row.verdicts);
  }
  return rows;
}

std::vector<Row> RoundTrip(const std::vector<Row>& rows, size_t events) {
  v1::VmTicks columns;
  EncodeColumns(Buffer(rows, events), &columns);
  v1::VmTicks parsed;
  EXPECT_TRUE(parsed.ParseFromString(columns.SerializeAsString()));
  return Decode(parsed, rows[0].sample.vcpus.size(), events);
}

std::vector<Row> SyntheticRows(size_t count) {
  fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle, fakes::Load::kShared}, 100'000'000,
                        3);
  std::vector<Row> rows;
  for (size_t t = 0; t < count; ++t) rows.push_back({10 + t, vm.Next(), vm.Verdicts()});
  return rows;
}

// Two further groups of two and one events on each of the three vCPUs.
const std::vector<size_t> kFurtherEvents = {2, 1};

std::vector<Row> RowsWithGroups(size_t count) {
  std::vector<Row> rows = SyntheticRows(count);
  std::mt19937_64 random(5);
  std::vector<core::GroupSample> groups(6);
  for (Row& row : rows) {
    for (size_t i = 0; i < groups.size(); ++i) {
      groups[i].time_enabled_ns += random() % 100'000'000;
      groups[i].time_running_ns += random() % 50'000'000;
      groups[i].counts[0] += random() >> (random() % 64);
      if (i % 2 == 0) groups[i].counts[1] += random() % 1000;
    }
    row.sample.further = groups;
  }
  return rows;
}

TickRows BufferWithGroups(const std::vector<Row>& rows) {
  TickRows buffer = Buffer({rows[0]}, fakes::SyntheticVm::kEvents);
  buffer.further_events = kFurtherEvents;
  for (size_t t = 1; t < rows.size(); ++t) {
    buffer.Append(rows[t].sequence, rows[t].sample, rows[t].verdicts);
  }
  return buffer;
}

v1::VmTicks SyntheticColumns(size_t count) {
  v1::VmTicks columns;
  EncodeColumns(Buffer(SyntheticRows(count), fakes::SyntheticVm::kEvents), &columns);
  return columns;
}

TEST(TickColumns, RealisticRowsComeBack) {
  const std::vector<Row> rows = SyntheticRows(50);
  EXPECT_EQ(RoundTrip(rows, fakes::SyntheticVm::kEvents), rows);
}

// Every field may hold anything: extremes, backward steps, wrap-around. (UBSan watches.)
TEST(TickColumns, AnyValueComesBack) {
  constexpr size_t kVcpus = 5;
  constexpr size_t kEvents = core::kMaxEvents;
  std::mt19937_64 random(42);
  const auto value = [&]() -> uint64_t {
    switch (random() % 5) {
      case 0:
        return 0;
      case 1:
        return std::numeric_limits<uint64_t>::max();
      case 2:
        return uint64_t{1} << (random() % 64);
      case 3:
        return random() % 1000;
      default:
        return random();
    }
  };
  std::vector<Row> rows(200);
  for (Row& row : rows) {
    row.sequence = value();
    row.sample.tick = value();
    row.sample.deadline_ns = static_cast<int64_t>(value());
    row.sample.wake_ns = static_cast<int64_t>(value());
    row.sample.vcpus.resize(kVcpus);
    row.verdicts.resize(kVcpus);
    for (size_t v = 0; v < kVcpus; ++v) {
      core::VcpuSample& vcpu = row.sample.vcpus[v];
      vcpu.read_begin_ns = static_cast<int64_t>(value());
      vcpu.read_end_ns = static_cast<int64_t>(value());
      vcpu.time_enabled_ns = value();
      vcpu.time_running_ns = value();
      for (uint64_t& count : vcpu.counts) count = value();
      vcpu.has_scheduler_times = random() % 3 != 0;
      vcpu.run_ns = vcpu.has_scheduler_times ? value() : 0;
      vcpu.run_delay_ns = vcpu.has_scheduler_times ? value() : 0;
      vcpu.state = static_cast<core::ThreadState>(random() % 7);
      row.verdicts[v] = {static_cast<core::Band>(random() % 5),
                         static_cast<core::Rule>(random() % 14), random() % 2 == 0};
    }
  }
  EXPECT_EQ(RoundTrip(rows, kEvents), rows);
}

// A set whose vCPUs could all not be opened still has ticks.
TEST(TickColumns, NoVcpusComeBack) {
  const std::vector<Row> rows = {
      {.sequence = 5, .sample = {.tick = 3, .vcpus = {}}, .verdicts = {}},
      {.sequence = 9, .sample = {.tick = 4, .vcpus = {}}, .verdicts = {}}};
  EXPECT_EQ(RoundTrip(rows, 2), rows);
}

// Slots beyond the epoch's events have no column: they are zero by definition.
TEST(TickColumns, KeepsNoCountsBeyondTheEvents) {
  std::vector<Row> rows = SyntheticRows(2);
  const std::vector<Row> back = RoundTrip(rows, 2);
  for (Row& row : rows) {
    for (core::VcpuSample& vcpu : row.sample.vcpus) vcpu.counts[2] = vcpu.counts[3] = 0;
  }
  EXPECT_EQ(back, rows);
}

// The layout that timeline.proto promises, worked out by hand: two vCPUs, three rows, one event.
TEST(TickColumns, LayoutIsTheDocumentedOne) {
  std::vector<Row> rows(3);
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto n = static_cast<int64_t>(t);
    Row& row = rows[t];
    row.sequence = 7 + 2 * t;
    row.sample.tick = 100 + t;
    row.sample.deadline_ns = 1000 * n;
    row.sample.wake_ns = 1000 * n + 5;
    row.sample.vcpus.resize(2);
    row.verdicts.assign(2, {core::Band::kProductive, core::Rule::kIpcHigh, t == 2});
    core::VcpuSample& busy = row.sample.vcpus[0];
    busy = {.read_begin_ns = 1000 * n + 6, .read_end_ns = 1000 * n + 16, .counts = {}};
    busy.has_scheduler_times = t != 1;
    core::VcpuSample& idle = row.sample.vcpus[1];
    idle = {.read_begin_ns = 1000 * n + 16, .read_end_ns = 1000 * n + 20 + n, .counts = {}};
    idle.state = core::ThreadState::kBlocked;
  }
  const auto busy = [&](size_t t) -> core::VcpuSample& { return rows[t].sample.vcpus[0]; };
  busy(0).time_enabled_ns = busy(0).time_running_ns = 10'000;
  busy(1).time_enabled_ns = busy(1).time_running_ns = 10'990;  // 10 less than the interval
  busy(2).time_enabled_ns = 11'980;
  busy(2).time_running_ns = 11'480;  // half of it on the PMU
  busy(0).counts[0] = 30'000;        // 3 per ns so far
  busy(1).counts[0] = 33'000;        // 30 more than that
  busy(2).counts[0] = 34'500;        // as expected: 3000 * (490 / 990) = 1484, 16 more
  busy(0).run_ns = 9'000;
  busy(2).run_ns = 10'900;
  busy(0).run_delay_ns = 40;
  busy(2).run_delay_ns = 55;

  v1::VmTicks columns;
  EncodeColumns(Buffer(rows, 1), &columns);
  EXPECT_THAT(columns.sequence(), ElementsAre(7, 2, 2));
  EXPECT_THAT(columns.tick(), ElementsAre(100, 1, 1));
  EXPECT_THAT(columns.deadline_mono_ns(), ElementsAre(0, 1000, 1000));
  EXPECT_THAT(columns.lateness_ns(), ElementsAre(5, 5, 5));
  EXPECT_THAT(columns.read_begin_ns(), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(columns.read_ns(), ElementsAre(10, 0, 0, 4, 1, 1));
  EXPECT_THAT(columns.time_enabled_ns(), ElementsAre(10'000, -10, 0, 0, -1001, 0));
  EXPECT_THAT(columns.not_running_ns(), ElementsAre(0, 0, 500, 0, 0, 0));
  EXPECT_THAT(columns.run_ns(), ElementsAre(-1000, 0, 910, 0, 0, 0));
  EXPECT_THAT(columns.run_delay_ns(), ElementsAre(40, 0, 15, 0, 0, 0));
  ASSERT_EQ(columns.counts_size(), 1);
  EXPECT_THAT(columns.counts(0).count(), ElementsAre(30'000, 30, 16, 0, 0, 0));
  EXPECT_THAT(columns.scheduler_absent(), ElementsAre(1, 2, 1, 1));
  EXPECT_THAT(columns.state(), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(columns.band(), ElementsAre(3, 3, 3, 3, 3, 3));
  EXPECT_THAT(columns.rule(), ElementsAre(5, 5, 5, 5, 5, 5));
  EXPECT_THAT(columns.starved(), ElementsAre(false, false, true, false, false, true));
}

// The rule for a proportion that leaves the range is part of the format: casting such a double is
// not the same on every machine.
TEST(TickColumns, ProportionOutOfRangeIsTheValueBefore) {
  std::vector<Row> rows(2);
  for (size_t t = 0; t < rows.size(); ++t) {
    rows[t].sample.vcpus.resize(1);
    rows[t].verdicts.resize(1);
    core::VcpuSample& vcpu = rows[t].sample.vcpus[0];
    vcpu.time_enabled_ns = vcpu.time_running_ns = t == 0 ? 1 : 1001;  // a thousand times as much
    vcpu.counts[0] = (uint64_t{1} << 62) * (t + 1) + 5 * t;
  }
  v1::VmTicks columns;
  EncodeColumns(Buffer(rows, 1), &columns);
  EXPECT_THAT(columns.counts(0).count(), ElementsAre(int64_t{1} << 62, 5));
}

// A chunk starts with the last row of the one before, which is no tick of its own.
TEST(TickColumns, NextChunkStartsFromTheLastRow) {
  const std::vector<Row> rows = SyntheticRows(5);
  TickRows buffer = Buffer({rows[0], rows[1], rows[2]}, fakes::SyntheticVm::kEvents);
  EXPECT_EQ(buffer.ticks(), 3u);
  buffer.StartNextChunk();
  EXPECT_EQ(buffer.ticks(), 0u);
  buffer.StartNextChunk();  // an empty flush changes nothing
  for (const size_t t : {3, 4}) buffer.Append(rows[t].sequence, rows[t].sample, rows[t].verdicts);
  EXPECT_EQ(buffer.ticks(), 2u);
  v1::VmTicks columns;
  EncodeColumns(buffer, &columns);
  EXPECT_TRUE(columns.has_base());
  EXPECT_THAT(Decode(columns, 3, fakes::SyntheticVm::kEvents),
              ElementsAre(rows[2], rows[3], rows[4]));
}

// What a later release may say reads as unknown, never as a value outside of the enumerations.
TEST(TickColumns, UnknownEnumerationsReadAsUnknown) {
  v1::VmTicks columns = SyntheticColumns(1);
  columns.set_state(0, 9);
  columns.set_band(1, 300);
  columns.set_rule(2, 4'000'000'000);
  const std::vector<Row> rows = Decode(columns, 3, fakes::SyntheticVm::kEvents);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].sample.vcpus[0].state, core::ThreadState::kNotRead);
  EXPECT_EQ(rows[0].verdicts[1].band, core::Band::kUnknown);
  EXPECT_EQ(rows[0].verdicts[2].rule, core::Rule::kNone);
}

// Any column that is too short or too long would be read past its end or shift what follows.
TEST(TickColumns, ColumnsThatDoNotFitAreRefused) {
  const v1::VmTicks good = SyntheticColumns(4);
  EXPECT_FALSE(ColumnReader::Open(good, 3, 4, kFurtherEvents).ok());
  const auto* descriptor = v1::VmTicks::descriptor();
  int changed = 0;
  for (int f = 0; f < descriptor->field_count(); ++f) {
    const auto* field = descriptor->field(f);
    if (!field->is_repeated() || field->name() == "scheduler_absent" ||
        field->name() == "further_groups") {
      continue;
    }
    v1::VmTicks shorter = good;
    shorter.GetReflection()->RemoveLast(&shorter, field);
    EXPECT_FALSE(ColumnReader::Open(shorter, 3, 4).ok()) << field->name();
    ++changed;
  }
  EXPECT_EQ(changed, 18);
  v1::VmTicks uneven = good;
  uneven.mutable_counts(3)->add_count(1);
  EXPECT_FALSE(ColumnReader::Open(uneven, 3, 4).ok());
  EXPECT_FALSE(ColumnReader::Open(good, 2, 4).ok());
  EXPECT_FALSE(ColumnReader::Open(good, 3, 3).ok());
  EXPECT_FALSE(ColumnReader::Open(v1::VmTicks(), 3, 0).ok());
  EXPECT_TRUE(ColumnReader::Open(good, 3, 4).ok());
}

TEST(TickColumns, FurtherGroupsComeBackWholeAcrossChunks) {
  const std::vector<Row> rows = RowsWithGroups(7);
  TickRows buffer = BufferWithGroups({rows[0], rows[1], rows[2]});
  v1::VmTicks columns;
  EncodeColumns(buffer, &columns);
  EXPECT_THAT(Decode(columns, 3, fakes::SyntheticVm::kEvents, kFurtherEvents),
              ElementsAre(rows[0], rows[1], rows[2]));
  buffer.StartNextChunk();
  for (size_t t = 3; t < 7; ++t) {
    buffer.Append(rows[t].sequence, rows[t].sample, rows[t].verdicts);
  }
  EncodeColumns(buffer, &columns);
  EXPECT_THAT(Decode(columns, 3, fakes::SyntheticVm::kEvents, kFurtherEvents),
              ElementsAre(rows[2], rows[3], rows[4], rows[5], rows[6]));
}

TEST(TickColumns, FurtherGroupsThatDoNotFitAreRefused) {
  v1::VmTicks good;
  EncodeColumns(BufferWithGroups(RowsWithGroups(4)), &good);
  const auto refused = [](const v1::VmTicks& columns, const std::vector<size_t>& further) {
    return !ColumnReader::Open(columns, 3, 4, further).ok();
  };
  EXPECT_FALSE(refused(good, kFurtherEvents));
  EXPECT_TRUE(refused(good, {}));
  EXPECT_TRUE(refused(good, {2, 2}));
  EXPECT_TRUE(refused(good, {2, 1, 1}));
  v1::VmTicks bad = good;
  bad.mutable_further_groups(1)->mutable_time_enabled_ns()->RemoveLast();
  EXPECT_TRUE(refused(bad, kFurtherEvents));
  bad = good;
  bad.mutable_further_groups(0)->mutable_not_running_ns()->Add(1);
  EXPECT_TRUE(refused(bad, kFurtherEvents));
  bad = good;
  bad.mutable_further_groups(0)->mutable_counts(1)->mutable_count()->RemoveLast();
  EXPECT_TRUE(refused(bad, kFurtherEvents));
}

TEST(TickColumns, AbsentEntriesOutsideAreRefused) {
  v1::VmTicks columns = SyntheticColumns(4);
  columns.add_scheduler_absent(11);  // the last of 12
  EXPECT_TRUE(ColumnReader::Open(columns, 3, 4).ok());
  columns.add_scheduler_absent(1);
  EXPECT_FALSE(ColumnReader::Open(columns, 3, 4).ok());
  columns.set_scheduler_absent(1, 0);  // twice the same
  EXPECT_FALSE(ColumnReader::Open(columns, 3, 4).ok());
  columns.set_scheduler_absent(1, std::numeric_limits<uint32_t>::max());
  EXPECT_FALSE(ColumnReader::Open(columns, 3, 4).ok());
}

// The counts of one group follow one another; more events than slots must not be believed.
TEST(TickColumns, MoreEventsThanSlotsAreRefused) {
  v1::VmTicks columns = SyntheticColumns(1);
  while (columns.counts_size() < 9) *columns.add_counts() = columns.counts(0);
  EXPECT_FALSE(ColumnReader::Open(columns, 3, 9).ok());
}

}  // namespace
}  // namespace vcpulse::timeline

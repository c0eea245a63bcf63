#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <gtest/gtest.h>

#include "monitor/core/delta.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<v1::TimelineRecord> ParseDelimited(const std::vector<Bytes>& parts) {
  const Bytes bytes = Concatenate(parts);
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  std::vector<v1::TimelineRecord> records;
  bool clean_end = false;
  v1::TimelineRecord record;
  while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&record, &in, &clean_end)) {
    records.push_back(record);
    record.Clear();
  }
  EXPECT_TRUE(clean_end);
  return records;
}

TEST(DelimitedWriter, WritesTheDeltasOfFurtherGroups) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle}, 10'000'000, 4);
  v1::VcpuSet set = vm.VcpuSet(3, 2);
  set.add_further_groups()->add_events("page-faults");
  writer->Add(SetRecord(set), 1);
  for (const uint64_t so_far : {10u, 25u}) {
    core::Sample sample = vm.Next();
    sample.further.resize(2);
    sample.further[1] = {.time_enabled_ns = 2 * so_far, .time_running_ns = so_far};
    sample.further[1].counts[0] = 100 * so_far;
    writer->AddTick(3, 2, sample, vm.Verdicts());
  }
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const std::vector<v1::TimelineRecord> records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(records[1].tick().vcpus(0).further_groups(), IsEmpty());  // the first of the epoch
  ASSERT_THAT(records[2].tick().vcpus(1).further_groups(), SizeIs(1));
  const v1::GroupTick& group = records[2].tick().vcpus(1).further_groups(0);
  EXPECT_EQ(group.time_enabled_ns(), 30u);
  EXPECT_EQ(group.time_running_ns(), 15u);
  EXPECT_THAT(group.counts(), ElementsAre(1500u));
}

// Of two vCPUs with two further groups each, every number in its place.
TEST(DelimitedWriter, WritesEachGroupOfEachVcpu) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle}, 10'000'000, 4);
  v1::VcpuSet set = vm.VcpuSet(3, 2);
  for (const char* event : {"page-faults", "migrations"})
    set.add_further_groups()->add_events(event);
  writer->Add(SetRecord(set), 1);
  for (const uint64_t factor : {0u, 1u}) {
    core::Sample sample = vm.Next();
    sample.further.resize(4);
    for (size_t i = 0; i < 4; ++i) {
      sample.further[i].time_enabled_ns = factor * (i + 1);
      sample.further[i].counts[0] = factor * 10 * (i + 1);
    }
    writer->AddTick(3, 2, sample, vm.Verdicts());
  }
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const v1::Tick tick = ParseDelimited(parts).at(2).tick();
  for (int v = 0; v < 2; ++v) {
    ASSERT_THAT(tick.vcpus(v).further_groups(), SizeIs(2));
    for (int g = 0; g < 2; ++g) {
      const v1::GroupTick& group = tick.vcpus(v).further_groups(g);
      EXPECT_EQ(group.time_enabled_ns(), 2 * v + g + 1) << v << g;
      EXPECT_THAT(group.counts(), ElementsAre(10 * (2 * v + g + 1))) << v << g;
    }
  }
}

TEST(DelimitedWriter, WritesConfidenceAndRawVerdictWhereThereIsOne) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  fakes::SyntheticVm vm({fakes::Load::kBusy}, 10'000'000, 4);
  writer->Add(SetRecord(vm.VcpuSet(1, 1)), 1);
  core::Verdict sure{.band = core::Band::kProductive, .rule = core::Rule::kIpcHigh};
  sure.raw_band = core::Band::kSpinning;
  sure.raw_rule = core::Rule::kIpcLow;
  core::Verdict barely = sure;
  barely.confidence_pct = 1;
  core::Verdict without = sure;
  without.confidence_pct = 0;
  for (const core::Verdict& verdict : {without, barely, without, core::Verdict{}}) {
    writer->AddTick(1, 1, vm.Next(), {&verdict, 1});
  }
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const auto records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(5));
  const auto vcpu = [&records](size_t i) { return records[i].tick().vcpus(0); };
  EXPECT_EQ(vcpu(2).confidence_pct(), 1u);
  EXPECT_EQ(vcpu(2).raw_band(), v1::BAND_SPINNING);
  EXPECT_EQ(vcpu(2).raw_rule(), v1::RULE_IPC_LOW);
  EXPECT_FALSE(vcpu(3).has_confidence_pct());
  EXPECT_TRUE(vcpu(3).has_raw_band());
  EXPECT_FALSE(vcpu(4).has_raw_band());
}

TEST(DelimitedWriter, TakesAsManyEventsAsASampleHas) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  v1::VcpuSet set;
  for (size_t i = 0; i < core::kMaxEvents; ++i) set.add_events(std::to_string(i));
  writer->Add(SetRecord(set), 1);
  set.add_events("one more");
  EXPECT_ANY_THROW(writer->Add(SetRecord(set), 1));
}

// Plain rows for other languages: deltas as core makes them, none in an epoch's first.
TEST(DelimitedWriter, WritesRowsOfDeltas) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  fakes::SyntheticVm vm({fakes::Load::kBusy, fakes::Load::kIdle}, 10'000'000, 4);
  writer->Add(SessionRecord("h\xff"), 1);
  writer->Add(SetRecord(vm.VcpuSet(3, 2)), 1);
  core::Sample first = vm.Next();
  writer->AddTick(3, 2, first, vm.Verdicts());
  EXPECT_THAT(parts, IsEmpty());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_THAT(parts, SizeIs(1));
  core::Sample second = vm.Next();
  second.vcpus[1].has_scheduler_times = false;
  writer->AddTick(3, 2, second, vm.Verdicts());
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());

  const std::vector<v1::TimelineRecord> records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(4));
  for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].sequence(), i + 1);
  EXPECT_EQ(records[0].session().host_name(), "h?");
  EXPECT_EQ(records[1].vcpu_set().vcpus_size(), 2);

  const v1::Tick& start = records[2].tick();
  EXPECT_TRUE(start.first_of_epoch());
  EXPECT_EQ(start.vm(), 3u);
  EXPECT_EQ(start.epoch(), 2u);
  EXPECT_EQ(start.tick(), first.tick);
  EXPECT_EQ(start.deadline_mono_ns(), first.deadline_ns);
  EXPECT_EQ(start.wake_mono_ns(), first.wake_ns);
  ASSERT_EQ(start.vcpus_size(), 2);
  EXPECT_EQ(start.vcpus(0).read_begin_mono_ns(), first.vcpus[0].read_begin_ns);
  EXPECT_EQ(start.vcpus(0).counts_size(), 0);
  EXPECT_EQ(start.vcpus(0).time_enabled_ns(), 0u);
  EXPECT_EQ(start.vcpus(0).band(), v1::BAND_UNSPECIFIED);
  EXPECT_FALSE(start.vcpus(0).has_run_ns());

  const v1::Tick& next = records[3].tick();
  EXPECT_FALSE(next.first_of_epoch());
  const core::VcpuDelta delta = core::Subtract(first.vcpus[0], second.vcpus[0]);
  const v1::VcpuTick& busy = next.vcpus(0);
  EXPECT_EQ(busy.interval_ns(), static_cast<uint64_t>(delta.interval_ns));
  EXPECT_EQ(busy.time_enabled_ns(), delta.time_enabled_ns);
  EXPECT_EQ(busy.time_running_ns(), delta.time_running_ns);
  EXPECT_THAT(busy.counts(),
              ElementsAre(delta.counts[0], delta.counts[1], delta.counts[2], delta.counts[3]));
  EXPECT_EQ(busy.run_ns(), delta.run_ns.value());
  EXPECT_TRUE(busy.has_run_delay_ns());
  EXPECT_EQ(busy.band(), v1::BAND_PRODUCTIVE);
  EXPECT_EQ(busy.rule(), v1::RULE_IPC_HIGH);
  EXPECT_FALSE(next.vcpus(1).has_run_ns());
  EXPECT_FALSE(next.vcpus(1).has_run_delay_ns());
  EXPECT_EQ(next.vcpus(1).state(), static_cast<v1::ThreadState>(second.vcpus[1].state));
}

// Memory is bounded without a flush.
TEST(DelimitedWriter, HandsOverALongBuffer) {
  std::vector<Bytes> parts;
  const auto writer = NewDelimitedWriter(CollectInto(&parts));
  for (int i = 0; i < 9; ++i) writer->Add(MarkerRecord(std::string(1 << 20, 'x'), 1), 1);
  EXPECT_THAT(parts, SizeIs(1));
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  EXPECT_THAT(ParseDelimited(parts), SizeIs(9));
}

TEST(DelimitedWriter, FailedSinkIsReportedOnce) {
  std::vector<Bytes> parts;
  bool full = true;
  const auto writer = NewDelimitedWriter([&](std::span<const uint8_t> bytes) {
    if (full) return absl::ResourceExhaustedError("no space left on device");
    return CollectInto(&parts)(bytes);
  });
  writer->Add(MarkerRecord("lost", 1), 1);
  EXPECT_EQ(writer->Flush(ClockAt(1)).message(), "no space left on device");
  full = false;
  writer->Add(MarkerRecord("kept", 1), 1);
  EXPECT_TRUE(writer->Flush(ClockAt(1)).ok());
  const auto records = ParseDelimited(parts);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].sequence(), 2u);
}

}  // namespace
}  // namespace vcpulse::timeline

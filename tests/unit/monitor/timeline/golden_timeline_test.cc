// Every later reader reads the timelines of every earlier release.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/unit/monitor/timeline/golden_timeline_v1.h"
#include "tests/unit/monitor/timeline/golden_timeline_v2.h"
#include "tests/unit/monitor/timeline/golden_timeline_v3.h"
#include "tests/unit/monitor/timeline/golden_timeline_v4.h"
#include "tests/unit/monitor/timeline/golden_timeline_v5.h"

namespace vcpulse::timeline {
namespace {

std::string Line(uint64_t sequence, const v1::TimelineRecord& record) {
  Entry entry{.sequence = sequence, .record = {}};
  if (record.has_session()) entry.record = record.session();
  if (record.has_vcpu_set()) entry.record = record.vcpu_set();
  if (record.has_marker()) entry.record = record.marker();
  if (record.has_gap()) entry.record = record.gap();
  if (record.has_life_cycle()) entry.record = record.life_cycle();
  if (record.has_clock_snapshot()) entry.record = record.clock_snapshot();
  if (record.has_summary()) entry.record = record.summary();
  return Describe(entry);
}

TEST(GoldenTimeline, Version1IsReadAsItWasWritten) {
  Seen seen;
  seen.report = ReadTimeline(VCPULSE_TEST_DATA "/timeline-v1.vpt", SinkInto(&seen));
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->chunks, 4u);
  EXPECT_EQ(seen.report->records, 24u);
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);

  std::vector<Bytes> ignored;
  const auto writer = NewChunkWriter(kGoldenStream, CollectInto(&ignored));
  EXPECT_EQ(seen.ticks, WriteGolden(*writer));

  std::vector<std::string> records;
  for (const std::string& line : seen.others) {
    if (line[0] != '0') records.push_back(line);
  }
  EXPECT_THAT(records, testing::ElementsAre(
                           Line(1, GoldenSession()), Line(2, GoldenSet(1, 1, 3, 3)),
                           Line(3, GoldenSet(2, 1, 1, 0)),
                           Line(10, MarkerRecord("body", 1'260'000'000)), Line(14, GoldenGap()),
                           Line(16, GoldenLifeCycle()), Line(17, GoldenSet(1, 2, 2, 3)),
                           Line(20, GoldenClock()), Line(24, GoldenSummary())));
  // A few values as numbers, so that a change of the formulas cannot pass unseen.
  ASSERT_EQ(seen.ticks.size(), 15u);
  EXPECT_EQ(seen.ticks[6].sample.wake_ns, 1'300'020'411);
  EXPECT_EQ(seen.ticks[6].sample.vcpus[2].time_running_ns, 199'980'000u);
  EXPECT_EQ(seen.ticks[6].sample.vcpus[2].counts[1], 799'920'018u);
  EXPECT_FALSE(seen.ticks[6].sample.vcpus[0].has_scheduler_times);
}

// The header is the one of release 1: a reader of that release must still take what we write.
TEST(GoldenTimeline, TodaysWriterStillWritesVersion1) {
  std::ifstream in(VCPULSE_TEST_DATA "/timeline-v1.vpt", std::ios::binary);
  const Bytes golden((std::istreambuf_iterator<char>(in)), {});
  const auto old_header = DecodeChunkHeader(golden);
  ASSERT_TRUE(old_header.ok()) << old_header.status();
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kGoldenStream, CollectInto(&chunks));
  WriteGolden(*writer);
  const auto new_header = DecodeChunkHeader(chunks.at(0));
  ASSERT_TRUE(new_header.ok()) << new_header.status();
  EXPECT_EQ(new_header->version, old_header->version);
  EXPECT_EQ(new_header->required_features, old_header->required_features);
}

TEST(GoldenTimeline, Version2IsReadAsItWasWritten) {
  Seen seen;
  std::string profile;
  seen.report = ReadTimeline(VCPULSE_TEST_DATA "/timeline-v2.vpt", [&](const Entry& entry) {
    const auto* kept = std::get_if<v1::Profile>(&entry.record);
    if (kept != nullptr) profile = kept->json();
    return SinkInto(&seen)(entry);
  });
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->chunks, 4u);
  EXPECT_EQ(seen.report->lost_records, 0u);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);
  EXPECT_THAT(profile, testing::HasSubstr("loop_ipc_from"));

  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(golden_v2::kStream, CollectInto(&chunks));
  EXPECT_EQ(seen.ticks, golden_v2::Write(*writer, profile));
  const Seen rewritten = ReadBytes(Concatenate(chunks));
  EXPECT_EQ(seen.others, rewritten.others);
  EXPECT_EQ(seen.sequences, rewritten.sequences);
  // A few values as numbers, so that a change of the formulas cannot pass unseen.
  ASSERT_EQ(seen.ticks.size(), 73u);
  EXPECT_EQ(seen.ticks[1].sample.vcpus[0].time_running_ns, 74'925'000u);
  EXPECT_EQ(seen.ticks[1].sample.further[0].counts[0], 49'950'000u);
  EXPECT_EQ(seen.ticks.back().sample.vcpus[1].counts[0], 4'495'500'000u);
  EXPECT_EQ(seen.ticks.back().verdicts[1].raw_rule, core::Rule::kWeak);
  EXPECT_EQ(seen.ticks.back().verdicts[1].confidence_pct, 83);
}

TEST(GoldenTimeline, Version3IsReadAsItWasWritten) {
  Seen seen;
  std::vector<v1::Statistics> statistics;
  seen.report = ReadTimeline(VCPULSE_TEST_DATA "/timeline-v3.vpt", [&](const Entry& entry) {
    const auto* read = std::get_if<v1::Statistics>(&entry.record);
    if (read != nullptr) statistics.push_back(*read);
    return SinkInto(&seen)(entry);
  });
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->chunks, 4u);
  EXPECT_EQ(seen.report->records, 49u);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(golden_v3::kStream, CollectInto(&chunks));
  EXPECT_EQ(seen.ticks, golden_v3::Write(*writer));
  const Seen rewritten = ReadBytes(Concatenate(chunks));
  EXPECT_EQ(seen.others, rewritten.others);
  EXPECT_EQ(seen.sequences, rewritten.sequences);
  // A few values as numbers.
  ASSERT_EQ(statistics.size(), 4u);
  EXPECT_EQ(statistics[1].sources(1).vcpus(1).values(2), 60u);
  EXPECT_EQ(statistics[2].sources(0).vcpus_size(), 2);
  EXPECT_EQ(statistics[2].sources(0).vcpus(1).values_size(), 0);
  EXPECT_EQ(statistics[3].sources_size(), 1);
}

TEST(GoldenTimeline, Version4IsReadAsItWasWritten) {
  Seen seen;
  std::vector<v1::Competitors> windows;
  std::vector<uint32_t> cpu_nodes;
  seen.report = ReadTimeline(VCPULSE_TEST_DATA "/timeline-v4.vpt", [&](const Entry& entry) {
    const auto* window = std::get_if<v1::Competitors>(&entry.record);
    if (window != nullptr) windows.push_back(*window);
    const auto* session = std::get_if<v1::Session>(&entry.record);
    if (session != nullptr) {
      cpu_nodes.assign(session->cpu_nodes().begin(), session->cpu_nodes().end());
    }
    return SinkInto(&seen)(entry);
  });
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->chunks, 3u);
  EXPECT_EQ(seen.report->records, 38u);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(golden_v4::kStream, CollectInto(&chunks));
  EXPECT_EQ(seen.ticks, golden_v4::Write(*writer));
  const Seen rewritten = ReadBytes(Concatenate(chunks));
  EXPECT_EQ(seen.others, rewritten.others);
  EXPECT_EQ(seen.sequences, rewritten.sequences);
  // A few values as numbers.
  EXPECT_THAT(cpu_nodes, testing::ElementsAre(1, 1, 1, 1, 1, 2, 2, 0));
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].run_delay_ns(), 510'000'000u);
  EXPECT_EQ(windows[0].competitors_size(), 4);
  EXPECT_EQ(windows[0].competitors(1).vm_name(), "elsewhere");
  EXPECT_EQ(windows[1].refused(), "the thread of vCPU 1 has ended");
}

TEST(GoldenTimeline, Version5IsReadAsItWasWritten) {
  Seen seen;
  std::vector<v1::HotAddresses> windows;
  seen.report = ReadTimeline(VCPULSE_TEST_DATA "/timeline-v5.vpt", [&](const Entry& entry) {
    const auto* window = std::get_if<v1::HotAddresses>(&entry.record);
    if (window != nullptr) windows.push_back(*window);
    return SinkInto(&seen)(entry);
  });
  ASSERT_TRUE(seen.report.ok()) << seen.report.status();
  EXPECT_EQ(seen.report->chunks, 2u);
  EXPECT_EQ(seen.report->records, 24u);
  EXPECT_TRUE(seen.report->damages.empty());
  EXPECT_TRUE(seen.report->ended_in_order);
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(golden_v5::kStream, CollectInto(&chunks));
  EXPECT_EQ(seen.ticks, golden_v5::Write(*writer));
  const Seen rewritten = ReadBytes(Concatenate(chunks));
  EXPECT_EQ(seen.others, rewritten.others);
  EXPECT_EQ(seen.sequences, rewritten.sequences);
  // A few values as numbers.
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].functions(0), "lock_slowpath");
  EXPECT_EQ(windows[0].function_addresses(0), 0xffffffff81000000);
  EXPECT_EQ(windows[0].code(0).bytes().size(), 8u);
  EXPECT_EQ(windows[0].code(1).isa(), v1::GuestCode::ISA_ARM64);
}

}  // namespace
}  // namespace vcpulse::timeline

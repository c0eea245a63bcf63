#include "monitor/rollup/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/rollup/row_text.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"
#include "tests/unit/monitor/rollup/rolled_up.h"

namespace vcpulse::rollup {
namespace {

using check::DrawnRecording;
using check::kRealtime_ns;  // 5 s after a window of 10 s begins
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr int64_t kTick_ns = check::kDrawnTick_ns;

std::string Times(size_t count, char letter) { return std::string(count, letter); }

TEST(Windows, AreAlignedToTheWallClockAndAnIntervalIsOfTheOneWithItsEnd) {
  DrawnRecording recording;
  // The last tick of the first window ends exactly where the second begins: it is of the second.
  recording.Draw(Times(49, 'P') + "S" + Times(10, 'H'));
  const RolledUp rolled = RollUpFile(recording.Finish(), {10 * kSecond_ns});
  const std::vector<Cells>& rows = rolled.rows.at(0);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(Number(rows[0], "window_start_ns"), kRealtime_ns - 5 * kSecond_ns);
  EXPECT_EQ(Number(rows[0], "window_ns"), 10 * kSecond_ns);
  EXPECT_EQ(Number(rows[0], "ticks"), 49);
  EXPECT_EQ(Number(rows[0], "productive_ns"), 49 * kTick_ns);
  EXPECT_EQ(Number(rows[0], "spinning_ns"), 0);
  EXPECT_EQ(Number(rows[1], "window_start_ns"), kRealtime_ns + 5 * kSecond_ns);
  EXPECT_EQ(Number(rows[1], "spinning_ns"), kTick_ns);
  EXPECT_EQ(Number(rows[1], "halted_ns"), 10 * kTick_ns);
}

TEST(Windows, SayOfWhomTheyAre) {
  v1::Session session = DrawnRecording::Session();
  session.set_boot_id("b00t");
  session.set_kernel_release("6.1.0-40");
  session.set_tool_version("1.2");
  session.set_agent_id("web-01");
  for (const auto& [key, value] : {std::pair("rack", "12"), std::pair("zone", "a")}) {
    v1::Label& label = *session.add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  session.mutable_classifier()->set_profile("generic");
  DrawnRecording recording(session);
  recording.Name(1, "web", "u-u-i-d");
  recording.Begin(1, {.vcpus = {3}});
  recording.Draw("PP");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(1));
  const Cells& row = rolled.rows[0][0];
  EXPECT_EQ(Text(row, "host"), "host1");
  EXPECT_EQ(Text(row, "agent"), "web-01");
  EXPECT_EQ(Text(row, "labels"), "rack=12,zone=a");
  EXPECT_EQ(Text(row, "boot_id"), "b00t");
  EXPECT_EQ(Text(row, "kernel_release"), "6.1.0-40");
  EXPECT_EQ(Text(row, "tool_version"), "1.2");
  EXPECT_EQ(Text(row, "stream"), "01010101010101010101010101010101");
  EXPECT_EQ(Text(row, "vm_name"), "web");
  EXPECT_EQ(Text(row, "vm_uuid"), "u-u-i-d");
  EXPECT_EQ(Text(row, "classifier"), "evidence");
  EXPECT_EQ(Text(row, "profile"), "generic");
  EXPECT_EQ(Number(row, "vm_pid"), 1001);
  EXPECT_EQ(Number(row, "vcpu"), 3);
  EXPECT_EQ(Number(row, "epoch"), 1);
  EXPECT_TRUE(IsNull(row, "vm_start_ticks"));
}

TEST(Windows, AnotherEpochIsAnotherRow) {
  DrawnRecording recording;
  recording.Draw("PPP^SS");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  const std::vector<Cells>& rows = rolled.rows.at(0);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(Number(rows[0], "epoch"), 1);
  EXPECT_EQ(Number(rows[0], "productive_ns"), 3 * kTick_ns);
  EXPECT_EQ(Number(rows[1], "epoch"), 2);
  EXPECT_EQ(Number(rows[1], "spinning_ns"), 2 * kTick_ns);
}

// From its true begin on, so that the maximum over rows is that of the recording.
TEST(Windows, ARunIsMeasuredFromItsBeginInAWindowBefore) {
  DrawnRecording recording;
  recording.Draw("PP" + Times(55, 'S') + "P" + Times(2, 's') + Times(15, 'H'));
  const RolledUp rolled = RollUpFile(recording.Finish(), {kSecond_ns, 10 * kSecond_ns});
  const std::vector<Cells>& rows = rolled.rows.at(1);
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(Number(rows[0], "longest_spin_ns"), 47 * kTick_ns);
  EXPECT_EQ(Number(rows[1], "longest_spin_ns"), 55 * kTick_ns);
  EXPECT_EQ(Number(rows[0], "longest_starvation_ns"), 0);
  EXPECT_EQ(Number(rows[1], "longest_starvation_ns"), 2 * kTick_ns);
  EXPECT_EQ(Number(rolled.rows[0][2], "longest_spin_ns"), 27 * kTick_ns) << "until its last tick";
  EXPECT_EQ(Number(rolled.rows[0].back(), "longest_spin_ns"), 0) << "it is over";
}

TEST(Windows, AGapIsTheTimeThatNoSampleCovers) {
  DrawnRecording recording;
  recording.Draw("PP");
  recording.Flush();
  recording.Draw("SS");
  recording.Flush(true);
  recording.Draw("PPP");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(1));
  EXPECT_EQ(Number(rolled.rows[0][0], "gap_ns"), 2 * kTick_ns);
  EXPECT_EQ(Number(rolled.rows[0][0], "measured_ns"), 5 * kTick_ns);
  EXPECT_EQ(Number(rolled.rows[0][0], "spinning_ns"), 0);
}

TEST(Windows, APauseOfTheRecordingIsNoGap) {
  DrawnRecording recording;
  recording.Draw("PP(");
  recording.Pass(3 * kSecond_ns);
  recording.Draw(")SS");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(2));
  EXPECT_EQ(Number(rolled.rows[0][1], "gap_ns"), 0);
}

TEST(Windows, WhatWasNotCountedIsNull) {
  DrawnRecording recording;
  recording.scheduler_times = false;
  recording.Draw("%NNN");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(1));
  const Cells& row = rolled.rows[0][0];
  for (const char* column :
       {"cycles", "instructions", "branches", "run_ns", "run_delay_ns", "run_delay_max_ns", "exits",
        "starved_ns", "longest_starvation_ns", "time_enabled_ns", "time_running_ns"}) {
    EXPECT_TRUE(IsNull(row, column)) << column;
  }
  EXPECT_EQ(Number(row, "unknown_no_counters_ns"), 3 * kTick_ns);
  EXPECT_EQ(Number(row, "starved_known_ns"), 0);
}

TEST(Windows, EventsInTurnsComeWithTheirOwnTimes) {
  replay::LiveRecording recording(100'000'000, replay::LiveRecording::Groups::kInTurns);
  recording.Begin({.vm = 1, .epoch = 1, .vcpus = 1});
  recording.Run(30);
  recording.End("duration");
  const RolledUp rolled =
      RollUpBytes(timeline::Concatenate(recording.chunks()), {3600 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(1));
  EXPECT_FALSE(IsNull(rolled.rows[0][0], "cycles")) << "of the first group";
  EXPECT_EQ(Text(rolled.rows[0][0], "other_counts"), "(none)") << "each event is named once";
}

TEST(Windows, EventsWithoutAColumnAreJson) {
  DrawnRecording recording;
  recording.Begin(1, {.events = {"cycles", "r01a8"}});
  recording.Draw("PP");
  const RolledUp rolled = RollUpFile(recording.Finish(), {60 * kSecond_ns});
  ASSERT_THAT(rolled.rows.at(0), SizeIs(1));
  EXPECT_EQ(Text(rolled.rows[0][0], "other_counts"),
            R"({"r01a8":{"count":400000000,"time_enabled_ns":200000000,)"
            R"("time_running_ns":200000000}})");
}

// No wall clock was recorded: there are no windows, and that is counted.
TEST(Windows, WithoutAWallClockThereAreNone) {
  DrawnRecording recording;
  recording.Draw("PPPP");
  const std::string path = recording.Finish();
  const RolledUp rolled = RollUp({kSecond_ns}, [&path](const timeline::EntrySink& sink) {
    const auto read = timeline::ReadTimeline(path, [&sink](const timeline::Entry& entry) {
      const bool is_clock = std::holds_alternative<v1::ClockSnapshot>(entry.record);
      return is_clock ? absl::OkStatus() : sink(entry);
    });
    EXPECT_TRUE(read.ok());
  });
  EXPECT_THAT(rolled.rows.at(0), SizeIs(0));
  EXPECT_EQ(rolled.undated_intervals, 4u);
}

// After a step of the wall clock windows go on from there.
TEST(Windows, FollowTheWallClockWhereItSteps) {
  for (const int64_t step_ns : {-7200 * kSecond_ns, -3 * kSecond_ns, 7200 * kSecond_ns}) {
    DrawnRecording recording;
    recording.Draw(Times(30, 'P'));
    recording.Flush();
    recording.Draw(Times(15, 'S'));
    const std::string path = recording.Finish();
    const RolledUp rolled = RollUp({10 * kSecond_ns}, [&](const timeline::EntrySink& sink) {
      int snapshots = 0;
      const auto read = timeline::ReadTimeline(path, [&](const timeline::Entry& entry) {
        const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record);
        if (snapshot == nullptr || ++snapshots < 3) return sink(entry);
        timeline::Entry stepped{.sequence = entry.sequence, .record = *snapshot};
        auto& clock = std::get<v1::ClockSnapshot>(stepped.record);
        clock.set_realtime_ns(clock.realtime_ns() + step_ns);
        return sink(stepped);
      });
      EXPECT_TRUE(read.ok());
    });
    Cells sum;
    for (const Cells& row : rolled.rows.at(0)) AddCells(row, sum);
    EXPECT_EQ(Number(sum, "ticks"), 45);
    EXPECT_EQ(Number(sum, "productive_ns"), 30 * kTick_ns);
    const Cells& after = rolled.rows[0].back();
    EXPECT_EQ(Number(after, "window_start_ns"),
              (kRealtime_ns + 4 * kSecond_ns + step_ns) / (10 * kSecond_ns) * (10 * kSecond_ns));
  }
}

std::string TextOf(const std::string& path, Format format) {
  std::string text;
  RowText out(format, [&text](std::string_view more) {
    text += more;
    return absl::OkStatus();
  });
  Windows windows({kSecond_ns}, [&out](size_t, const Row& row) { return out.Add(row); });
  EXPECT_TRUE(
      timeline::ReadTimeline(path, [&](const timeline::Entry& e) { return windows.Add(e); }).ok());
  EXPECT_TRUE(windows.Finish().ok());
  EXPECT_TRUE(out.Finish().ok());
  return text;
}

TEST(RowText, IsCsvOrJsonLinesOfTheSameTable) {
  DrawnRecording recording;
  recording.Name(1, "a \"b\", c");
  recording.Draw("PP");
  const std::string path = recording.Finish();
  const std::string csv = TextOf(path, Format::kCsv);
  EXPECT_THAT(csv, StartsWith("window_start_ns,window_ns,agent,host,labels,boot_id,kernel_release,"
                              "stream,vm,"));
  EXPECT_THAT(csv, HasSubstr(",\"a \"\"b\"\", c\","));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 2);
  const std::string jsonl = TextOf(path, Format::kJsonLines);
  EXPECT_THAT(jsonl, StartsWith("{\"window_start_ns\":1767323045000000000,\"window_ns\":1000000000,"
                                "\"agent\":null,\"host\":\"host1\""));
  EXPECT_THAT(jsonl, HasSubstr(R"("vm_name":"a \"b\", c")"));
  EXPECT_EQ(TextOf(path, Format::kCsv), csv) << "the same bytes again";
}

TEST(RowText, HasItsHeaderWithoutARow) {
  std::string text;
  RowText out(Format::kCsv, [&text](std::string_view more) {
    text += more;
    return absl::OkStatus();
  });
  EXPECT_TRUE(out.Finish().ok());
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_THAT(text, StartsWith("window_start_ns,"));
}

}  // namespace
}  // namespace vcpulse::rollup

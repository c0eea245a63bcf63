// CheckTimeline: what a tick, a marker and a loss mean, and what can be read.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "monitor/check/check.h"
#include "tests/unit/monitor/check/check_texts.h"

namespace vcpulse::check {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckTimeline, AMarkerInsideATickCutsIt) {
  DrawnRecording recording;
  recording.Draw("SSSSS");
  recording.Mark("a", recording.now_ns() + kDrawnTick_ns / 4);
  recording.Draw("SPPPPP[b]SS");
  const Result result = Check(recording.Finish(), {"spinning <= 20%"}, InPhase("a"));
  const Finding& finding = result.judged.at(0).findings.at(0);
  EXPECT_EQ(finding.judged_ns, 23 * kDrawnTick_ns / 4);
  EXPECT_EQ(finding.observed, (Bounds{3.0 / 23, 3.0 / 23}));
  EXPECT_EQ(finding.ticks, 6u);
}

TEST(CheckTimeline, ATickAcrossTwoSpansIsOneTick) {
  DrawnRecording recording;
  recording.Draw("[a]P");
  recording.Mark("a", recording.now_ns() + kDrawnTick_ns / 2);
  recording.Draw("PPP[b]");
  const Result result = Check(recording.Finish(), {"productive >= 100%"}, InPhase("a"));
  EXPECT_EQ(result.spans, 2u);
  EXPECT_EQ(result.judged.at(0).findings.at(0).ticks, 4u);
}

TEST(CheckTimeline, MarkersThatGoBackwardsKeepTheirOrder) {
  DrawnRecording recording;
  recording.Draw("PPPPP");
  recording.Mark("a", recording.now_ns());
  recording.Mark("b", recording.now_ns() - 3 * kDrawnTick_ns);
  recording.Draw("SSSSS[c]PP");
  const std::string path = recording.Finish();
  const Result result = Check(path, {"spinning >= 100%"}, InPhase("b"));
  EXPECT_EQ(result.outcome, Outcome::kPass);
  EXPECT_EQ(result.judged_ns, 5 * kDrawnTick_ns);
  EXPECT_THAT(result.phases, ElementsAre("a", "b", "c"));
  // "a" ended when it began.
  EXPECT_EQ(Check(path, {"spinning >= 1%"}, InPhase("a")).judged_ns, 0);
}

TEST(CheckTimeline, ATickReachesFromTheMiddleOfAReadToTheNext) {
  DrawnRecording recording;
  recording.read_ns = kDrawnTick_ns / 5;
  recording.Draw("SSSS[a]PPPPP[b]S");
  const Result result = Check(recording.Finish(), {"spinning <= 50%"}, InPhase("a"));
  // The tick that was due as "a" began was read 10 ms after it, and so at "b".
  EXPECT_EQ(result.judged.at(0).findings.at(0).observed, (Bounds{0.02, 0.02}));
}

TEST(CheckTimeline, ALostChunkIsAGap) {
  DrawnRecording recording;
  recording.Draw("SSSSSSSSSS");
  recording.Flush();
  recording.Draw("SSSSS");
  recording.Flush(true);
  recording.Draw("SSSSS");
  const Result result = Check(recording.Finish(), {"spinning >= 90%", "gaps <= 10%"});
  EXPECT_EQ(result.judged.at(0).findings.at(0).observed, (Bounds{0.75, 1}));
  EXPECT_EQ(result.judged.at(1).findings.at(0).observed, (Bounds{0.25, 0.25}));
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("5 records lost")));
}

// How long the time before the first record was is not known, so it is no gap, and proves nothing.
TEST(CheckTimeline, NoPassOfGapsWhereTheBeginningIsMissing) {
  DrawnRecording recording;
  recording.Draw("SSSSS");
  recording.Flush(true);
  recording.Draw("SSSSSSSSSS....SSSSSS");
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "gaps <= 50%"),
              ElementsAre("VM guest1: INCONCLUSIVE, the timeline begins with record 10: earlier "
                          "records are not here"));
  EXPECT_EQ(Check(path, {"gaps <= 1%"}).outcome, Outcome::kFail);
  const Result result = Check(path, {"spinning >= 50%"});
  EXPECT_EQ(result.outcome, Outcome::kPass);
  EXPECT_THAT(result.notes, ElementsAre("begins with record 10: earlier records are not here"));
}

TEST(CheckTimeline, NoPassOfGapsWhereTheEndIsDamaged) {
  DrawnRecording recording;
  recording.Draw("SSSSSSSSSS....SSSSSS");
  recording.Flush();
  recording.Draw("SSSSS");
  const std::string path = recording.Finish();
  EXPECT_EQ(Check(path, {"gaps <= 50%"}).outcome, Outcome::kPass);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(LinesOf(path, "gaps <= 50%"),
              ElementsAre("VM guest1: INCONCLUSIVE, records at the end of the timeline may be "
                          "lost: how long it lasted is not known"));
  EXPECT_EQ(Check(path, {"gaps <= 1%"}).outcome, Outcome::kFail);
  EXPECT_EQ(Check(path, {"spinning >= 50%"}).outcome, Outcome::kPass);
}

TEST(CheckTimeline, NotesARecordingThatDidNotEndInOrder) {
  DrawnRecording recording;
  recording.Draw("SSSSSSSSSS");
  EXPECT_THAT(Check(recording.Finish(true), {"spinning >= 90%"}).notes,
              ElementsAre(HasSubstr("was not closed cleanly")));
}

TEST(CheckTimeline, NoPassOfAPhaseWhereRecordsAreLost) {
  DrawnRecording recording;
  recording.Draw("[a]SSSSSSSSSS");
  recording.Flush();
  recording.Draw("SSSSS");
  recording.Flush(true);
  recording.Draw("[b]SSSSSSSSSS");
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "spinning >= 50%", InPhase("a")),
              ElementsAre("VM guest1 vCPU 0: INCONCLUSIVE, records of the timeline are lost, a "
                          "marker may be among them"));
  EXPECT_EQ(Check(path, {"spinning <= 20%"}, InPhase("a")).outcome, Outcome::kFail);
  EXPECT_EQ(Check(path, {"spinning >= 50%"}).outcome, Outcome::kPass);
}

TEST(CheckTimeline, NoPassOfAPhaseThatMayComeAgainInADamagedEnd) {
  DrawnRecording recording;
  recording.Draw("[a]PPPPPPPPPP[b]PPPPPPPPPP");
  recording.Flush();
  recording.Draw("[a]SSSSSSSSSS");
  const std::string path = recording.Finish();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(LinesOf(path, "spinning <= 10%", InPhase("a")),
              ElementsAre("VM guest1 vCPU 0: INCONCLUSIVE, records of the timeline are lost, a "
                          "marker may be among them"));
}

// As of an import whose t_ns count from 1970.
TEST(CheckTimeline, InstantsMayBeThoseOfAWallClock) {
  DrawnRecording recording;
  recording.Pass(kRealtime_ns);
  recording.Draw("PPPPP[a]PPPPPPPPPP");
  const std::string path = recording.Finish();
  EXPECT_THAT(LinesOf(path, "gaps <= 1%"), ElementsAre("VM guest1: PASS"));
  EXPECT_THAT(LinesOf(path, "productive >= 100%"), ElementsAre("VM guest1 vCPU 0: PASS"));
  EXPECT_THAT(LinesOf(path, "productive >= 100%", InPhase("a")),
              ElementsAre("VM guest1 vCPU 0: PASS"));
}

TEST(CheckTimeline, NoPassOfAPhaseThatWasCutOff) {
  DrawnRecording recording;
  recording.Draw("[a]SSSSSSSSSS[b]SSSSSSSSSS");
  const std::string path = recording.Finish(true);
  EXPECT_THAT(LinesOf(path, "spinning >= 50%", InPhase("b")),
              ElementsAre("VM guest1 vCPU 0: INCONCLUSIVE, the recording was cut off within the "
                          "phase"));
  EXPECT_EQ(Check(path, {"spinning <= 20%"}, InPhase("b")).outcome, Outcome::kFail);
  EXPECT_EQ(Check(path, {"spinning >= 50%"}, InPhase("a")).outcome, Outcome::kPass);
}

TEST(CheckTimeline, NotesVmsThatEnded) {
  DrawnRecording recording;
  recording.Begin(1, {});
  recording.Begin(2, {});
  recording.Draw({{1, {"PPPPP"}}, {2, {"PPPPP"}}});
  recording.LifeCycle(2, v1::LifeCycle::KIND_VM_ENDED);
  recording.Draw("[a]PPPPP![b].....");
  const std::string path = recording.Finish();
  const std::vector<std::string> all = {"gaps <= 90%"};
  EXPECT_THAT(Check(path, all).notes,
              ElementsAre("VM guest1 ended 1.0 s after the recording's start, within the judged "
                          "time",
                          "VM guest2 ended 500.0 ms after the recording's start, within the judged "
                          "time"));
  EXPECT_THAT(Check(path, all, InPhase("a")).notes,
              ElementsAre("VM guest2 had ended before the judged time, it is not judged"));
  EXPECT_THAT(Check(path, {"vm=guest1: gaps <= 90%"}, InPhase("a")).notes, IsEmpty());
}

TEST(CheckTimeline, NotesThatTheRecordingWasPaused) {
  DrawnRecording recording;
  recording.Draw("PP[a]PPP(....)PPP[b]PP(..)[c]PP");
  const std::string path = recording.Finish();
  EXPECT_THAT(Check(path, {"gaps <= 90%"}, InPhase("a")).notes,
              ElementsAre("the recording was paused for 400.0 ms of it"));
  EXPECT_THAT(Check(path, {"gaps <= 90%"}, InPhase("c")).notes, IsEmpty());
  EXPECT_EQ(ReasonOf("PP([a]..[b]..)PP", "gaps <= 90%", InPhase("a")),
            "the recording was paused for all of it");
}

TEST(CheckTimeline, ATickThatIsMostlyOfAnotherPhaseDoesNotCount) {
  for (const auto& [part, ticks] : std::vector<std::pair<int64_t, uint64_t>>{{40, 4}, {60, 3}}) {
    DrawnRecording recording;
    recording.Draw("PP");
    recording.Mark("a", recording.now_ns() + part * kDrawnTick_ns / 100);
    recording.Draw("PPPP[b]PP");
    const Result result = Check(recording.Finish(), {"productive >= 100%"}, InPhase("a"));
    EXPECT_EQ(result.judged.at(0).findings.at(0).ticks, ticks);
  }
}

TEST(CheckTimeline, WithoutARunThereIsNoWorst) {
  EXPECT_EQ(ReasonOf("PPPPPPPPPP", "longest(spinning) >= 1s"),
            "longest(spinning) 0.0 ms, wanted >= 1s");
}

TEST(CheckTimeline, ReadsAPipeThatHasAName) {
  DrawnRecording recording;
  recording.Draw("SSSSSPPPPP");
  std::ifstream in(recording.Finish(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string fifo = ::testing::TempDir() + "/vcpulse_fifo_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << bytes; });
  EXPECT_EQ(Check(fifo, {"spinning <= 50%"}).outcome, Outcome::kPass);
  writer.join();
  std::remove(fifo.c_str());
}

TEST(CheckTimeline, NothingThatCanBeReadIsAnError) {
  DrawnRecording recording;
  recording.Draw("SSSSSPPPPP");
  const std::string path = recording.Finish();
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(-1, std::ios::end)
      << '~';
  const auto result = CheckTimeline(path, {}, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr(": nothing could be read: 1 damaged region, the first: "));
}

TEST(CheckTimeline, NotesVcpusThatWaitedForACpu) {
  for (const uint64_t percent : {10, 25}) {
    DrawnRecording recording;
    recording.waited_percent = percent;
    recording.Draw("[a]SSSSSSSSSS[b]");
    recording.waited_percent = 90;
    recording.Draw("SSS");
    const Result result = Check(recording.Finish(), {"gaps <= 90%"}, InPhase("a"));
    if (percent == 10) {
      EXPECT_THAT(result.notes, IsEmpty());
    } else {
      EXPECT_THAT(result.notes,
                  ElementsAre("the host was short of CPUs; of the judged time waited for one: VM "
                              "guest1 vCPU 0 25.0 %"));
    }
  }
}

TEST(CheckTimeline, NoVcpuWaitsLongerThanTheTime) {
  DrawnRecording recording;
  recording.waited_percent = 200;  // what it waited for before a tick is booked in it
  recording.Draw("SSSSSSSSSS");
  EXPECT_THAT(Check(recording.Finish(), {"gaps <= 90%"}).notes,
              ElementsAre(HasSubstr("VM guest1 vCPU 0 100.0 %")));
}

TEST(CheckTimeline, TwoRecordingsInOneFileAreAnError) {
  DrawnRecording recording;
  recording.Draw("SSSSSSSSSS");
  recording.BeginStream();
  const std::string path = recording.Finish();
  const auto result = CheckTimeline(path, {}, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status().message(),
            path +
                ": a second recording begins after the first: they can only be read one at a "
                "time");
}

TEST(CheckTimeline, AFileThatIsNotThereIsAnError) {
  EXPECT_EQ(CheckTimeline("/nonexistent/a.vpt", {}, {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(CheckTimeline, ReadsStandardInput) {
  DrawnRecording recording;
  recording.Draw("SSSSSPPPPP");
  const std::string path = recording.Finish();
  const int kept = dup(STDIN_FILENO);
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(dup2(file, STDIN_FILENO), 0);
  const Result result = Check("-", {"spinning <= 50%"});
  dup2(kept, STDIN_FILENO);
  close(file);
  close(kept);
  EXPECT_EQ(result.outcome, Outcome::kPass);
}
}  // namespace
}  // namespace vcpulse::check

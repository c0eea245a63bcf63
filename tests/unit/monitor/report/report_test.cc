#include "monitor/report/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/json_report.h"
#include "monitor/report/text_report.h"
#include "monitor/timeline/writer.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSecond_ns = 1'000'000'000;

// A real file of one busy vCPU: 51 ticks of 100 ms, a chunk each 10 ticks, and a Summary.
class ReadPartTest : public ::testing::Test {
 protected:
  ReadPartTest() { Write(path_, {1}); }
  ~ReadPartTest() override { std::remove(path_.c_str()); }

  // The names of markers by the tick before which they come.
  static void Write(const std::string& path, timeline::StreamId id,
                    const std::map<uint64_t, std::string>& markers = {}) {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    const auto writer = timeline::NewChunkWriter(id, [&file](std::span<const uint8_t> bytes) {
      for (const uint8_t byte : bytes) file.put(static_cast<char>(byte));
      return absl::OkStatus();
    });
    v1::ClockSnapshot clock;
    clock.set_mono_ns(kStart_ns);
    v1::TimelineRecord record;
    *record.mutable_session() = HandMadeRecording::Session();
    record.mutable_session()->set_stream_id(id.data(), id.size());
    writer->Add(record, kStart_ns);
    *record.mutable_vcpu_set() = HandMadeRecording::Set(1, 1, {2001});
    writer->Add(record, kStart_ns);
    core::Sample sample;
    sample.vcpus.resize(1);
    for (uint64_t tick = 0; tick <= 50; ++tick) {
      if (const auto marker = markers.find(tick); marker != markers.end()) {
        record.mutable_marker()->set_name(marker->second);
        record.mutable_marker()->set_mono_ns(kStart_ns + static_cast<int64_t>(tick) * kTick_ns -
                                             kTick_ns);
        writer->Add(record, sample.wake_ns);
      }
      sample.tick = tick;
      sample.deadline_ns = kStart_ns + static_cast<int64_t>(tick) * kTick_ns;
      sample.wake_ns = sample.deadline_ns;
      core::VcpuSample& vcpu = sample.vcpus[0];
      vcpu.read_begin_ns = vcpu.read_end_ns = sample.wake_ns;
      vcpu.time_enabled_ns = vcpu.time_running_ns = vcpu.counts[0] = vcpu.counts[1] =
          tick * static_cast<uint64_t>(kTick_ns);
      const core::Verdict verdict = tick == 0 ? core::Verdict{} : kProductiveHigh;
      writer->AddTick(1, 1, sample, std::span(&verdict, 1));
      clock.set_mono_ns(sample.wake_ns);
      if (tick % 10 != 9) continue;
      ASSERT_TRUE(writer->Flush(clock).ok());
    }
    record.mutable_summary()->set_end_reason("duration");
    writer->Add(record, sample.wake_ns);
    ASSERT_TRUE(writer->Flush(clock).ok());
  }

  const std::string path_ =
      ::testing::TempDir() + "/vcpulse_read_part_" + std::to_string(getpid()) + ".vpt";
};

TEST_F(ReadPartTest, ReadsTheWhole) {
  Summary summary;
  const auto report = ReadPart(path_, {}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->Start(), kStart_ns);
  EXPECT_EQ(report->DurationNs(), 5 * kSecond_ns);
  EXPECT_EQ(report->EndedInOrder(), true);
  EXPECT_EQ(summary.vms().at(1).vcpus.at(0).totals.MeasuredNs(), 5 * kSecond_ns);
  EXPECT_EQ(summary.vms().at(1).vcpus.at(0).FindEvent("cycles")->raw, 5'000'000'000u);
}

// Offsets are of the recording: the ticks at 1.1, 1.2, ... 2.0 s, each with the interval before it,
// which lies in the part; and chunks far from them are not even read.
TEST_F(ReadPartTest, SeeksToAPart) {
  Summary summary;
  const auto report =
      ReadPart(path_, {.from_ns = 1 * kSecond_ns, .to_ns = 2 * kSecond_ns}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->Start(), kStart_ns);
  EXPECT_EQ(report->DurationNs(), kSecond_ns);
  EXPECT_EQ(summary.vms().at(1).samples, 10u);
  EXPECT_EQ(summary.vms().at(1).vcpus.at(0).totals.MeasuredNs(), 10 * kTick_ns);
  EXPECT_EQ(report->EndedInOrder(), std::nullopt);  // not looked at
  EXPECT_EQ(report->read.chunks, 4u);               // of 6: a tick may come late
}

// Parts that touch share no tick and lose none.
TEST_F(ReadPartTest, PartsThatTouchAddUpToTheWhole) {
  Summary whole;
  Summary first;
  Summary second;
  ASSERT_TRUE(ReadPart(path_, {}, whole).ok());
  constexpr int64_t kCut_ns = 2 * kSecond_ns + 3 * kTick_ns;
  ASSERT_TRUE(ReadPart(path_, {.from_ns = std::nullopt, .to_ns = kCut_ns}, first).ok());
  ASSERT_TRUE(ReadPart(path_, {.from_ns = kCut_ns}, second).ok());
  const auto measured = [](const Summary& s) {
    return s.vms().at(1).vcpus.at(0).totals.MeasuredNs();
  };
  EXPECT_EQ(measured(first), kCut_ns);
  EXPECT_EQ(measured(first) + measured(second), measured(whole));
}

// Standard input cannot be sought in, and must say the same.
TEST_F(ReadPartTest, FiltersAPartOfStandardInput) {
  const int saved = dup(STDIN_FILENO);
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  dup2(file, STDIN_FILENO);
  Summary summary;
  const auto report = ReadPart("-", {.from_ns = 2 * kSecond_ns, .to_ns = 3 * kSecond_ns}, summary);
  if (saved >= 0) dup2(saved, STDIN_FILENO);
  close(file);
  close(saved);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->Start(), kStart_ns);
  EXPECT_EQ(report->DurationNs(), kSecond_ns);
  EXPECT_EQ(summary.vms().at(1).samples, 10u);
  EXPECT_EQ(summary.vms().at(1).vcpus.at(0).totals.MeasuredNs(), 10 * kTick_ns);
}

// The spans of "load" are 0.9 s to 1.9 s, the ticks 10 to 19, and 3.9 s to the end, 40 to 50.
TEST_F(ReadPartTest, ReadsAllSpansOfAPhase) {
  std::remove(path_.c_str());
  Write(path_, {1}, {{10, "load"}, {20, "idle"}, {40, "load"}});
  Summary summary;
  const auto report = ReadPart(path_, {.phase = "load"}, summary);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->IsPart());
  EXPECT_EQ(report->Start(), kStart_ns);
  EXPECT_EQ(report->DurationNs(), 21 * kTick_ns);
  EXPECT_EQ(report->phase->spans, 2u);
  EXPECT_EQ(summary.vms().at(1).samples, 21u);
  EXPECT_EQ(summary.vms().at(1).vcpus.at(0).totals.MeasuredNs(), 21 * kTick_ns);
  EXPECT_EQ(summary.markers().size(), 2u);
  EXPECT_THAT(RenderText(*report), HasSubstr("2.1 s of it (phase load, 2 spans), a tick every"));
  EXPECT_THAT(RenderJson(*report), HasSubstr("\"phase\": \"load\",\n    \"phase_spans\": 2,\n"));
}

TEST_F(ReadPartTest, SaysWhichPhasesThereAre) {
  Summary summary;
  const auto none = ReadPart(path_, {.phase = "load"}, summary);
  EXPECT_EQ(none.status().message(), path_ + ": no phase 'load'; no phase was marked");
  std::remove(path_.c_str());
  Write(path_, {1}, {{10, "idle"}, {20, "boot"}, {30, "idle"}});
  const auto other = ReadPart(path_, {.phase = "load"}, summary);
  EXPECT_EQ(other.status().message(), path_ + ": no phase 'load'; phases are: idle, boot");
  EXPECT_THAT(std::string(ReadPart("-", {.phase = "load"}, summary).status().message()),
              HasSubstr("standard input can be read once"));
}

// Two recordings in one file would mix two VMs that are both number 1.
TEST_F(ReadPartTest, RefusesTwoRecordingsInOneFile) {
  Write(path_, {2});
  Summary summary;
  const auto report = ReadPart(path_, {}, summary);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr(path_ + ": a second recording begins"));
}

TEST_F(ReadPartTest, PassesOnThatThereIsNoFile) {
  Summary summary;
  EXPECT_EQ(ReadPart(path_ + ".none", {}, summary).status().code(), absl::StatusCode::kNotFound);
  const auto part = ReadPart(path_ + ".none", {.from_ns = 1, .to_ns = std::nullopt}, summary);
  EXPECT_EQ(part.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace vcpulse::report

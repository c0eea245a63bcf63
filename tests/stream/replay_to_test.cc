// `vcpulse replay FILE --to`: old timelines to a collector. Needs no guest.

#include <chrono>
#include <memory>
#include <random>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/stream/protocol/address.h"
#include "tests/stream/stream_commands.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::stream_tests {
namespace {

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ReplayTo : public StreamCommands {
 protected:
  Finished Replay(const std::string& file, const std::string& agent = "host-a",
                  const std::string& speed = "max") const {
    return RunProgram(Vcpulse(
        {"replay", file, "--to", collector_.address(), "--speed", speed, "--agent-id", agent}));
  }

  RunningCollector collector_{"tcp:127.0.0.1:0", Path("collected")};
};

TEST_F(ReplayTo, EqualsWhatWasRecordedWhateverTheRelease) {
  for (const std::string name : {"timeline-v1.vpt", "timeline-v2.vpt"}) {
    const std::string file = std::string(VCPULSE_TEST_DATA) + "/" + name;
    const size_t before = StreamsOf("host-a").size();
    const Finished finished = Replay(file);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, "");
    ASSERT_THAT(StreamsOf("host-a"), SizeIs(before + 1)) << collector_.Err();
    bool found = false;
    for (const std::string& stream : StreamsOf("host-a")) {
      found = found || Joined(stream) == Contents(file);
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST_F(ReplayTo, TheFolderIsNamedByWhenItWasRecorded) {
  const Finished finished = Replay(std::string(VCPULSE_TEST_DATA) + "/timeline-v2.vpt");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1)) << collector_.Err();
  EXPECT_THAT(std::filesystem::path(StreamsOf("host-a").front()).filename().string(),
              StartsWith("20260528T202642Z-"));
}

// Sending it again adds nothing.
TEST_F(ReplayTo, TwiceIsStoredOnce) {
  DrawnRecording drawn;
  for (int i = 0; i < 20; ++i) {
    drawn.Draw("PSH");
    drawn.Flush();
  }
  const std::string file = drawn.Finish();
  const Finished first = Replay(file);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err,
              AllOf(HasSubstr(": 21 chunks ("), HasSubstr("21 sent, 21 acknowledged\n")));
  const Finished second = Replay(file);
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err,
              HasSubstr("0 sent, 21 acknowledged (21 were there already, or told as lost)"));
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], file);
}

// A hole is told, and the collected timeline says what the file says of it.
TEST_F(ReplayTo, WhatTheFileLostIsLost) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  drawn.Flush();
  drawn.Draw("SSS");
  drawn.Flush(/*lost=*/true);
  drawn.Draw("HHH");
  const std::string file = drawn.Finish();
  const Finished finished = Replay(file);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("3 records"));
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  const Finished local = RunProgram(Vcpulse({"export", file, "--format", "jsonl"}));
  const Finished collected =
      RunProgram(Vcpulse({"export", StreamsOf("host-a")[0], "--format", "jsonl"}));
  EXPECT_EQ(collected.out, local.out);
  EXPECT_THAT(collected.err, HasSubstr("3 records"));
}

// Also one of a torn end, and one whose beginning is gone.
TEST_F(ReplayTo, FilesThatAreNotWhole) {
  DrawnRecording longer;
  longer.Draw("PPP");
  longer.Flush();
  longer.Draw("SSS");
  longer.Flush();
  longer.Draw("HHH");
  const std::string all = Contents(longer.Finish());
  std::ofstream(Path("torn.vpt"), std::ios::binary) << all.substr(0, all.size() - 5);
  const Finished torn = Replay(Path("torn.vpt"));
  EXPECT_EQ(torn.exit_code, 0) << torn.err;
  EXPECT_THAT(torn.err, HasSubstr("warning: " + Path("torn.vpt")));
  const size_t second_chunk = all.find("\x89VPT", 1);
  std::ofstream(Path("rest.vpt"), std::ios::binary) << all.substr(second_chunk);
  const Finished rest = Replay(Path("rest.vpt"), "host-b");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  ASSERT_THAT(StreamsOf("host-b"), SizeIs(1));
  EXPECT_THAT(Joined(StreamsOf("host-b")[0]), HasSubstr(all.substr(second_chunk)));
}

// A chunk that is longer than a frame goes in pieces, and the records are the same.
TEST_F(ReplayTo, AChunkThatIsLongerThanAFrame) {
  std::vector<timeline::Bytes> chunks;
  const auto writer = timeline::NewChunkWriter({9}, timeline::CollectInto(&chunks));
  v1::TimelineRecord session = timeline::SessionRecord("host1");
  session.mutable_session()->set_stream_id(std::string(1, 9) + std::string(15, 0));
  writer->Add(session, 1);
  fakes::SyntheticVm vm(std::vector<fakes::Load>(32, fakes::Load::kBusy), 100'000'000, 1);
  writer->Add(timeline::SetRecord(vm.VcpuSet(1, 1)), 1);
  std::minstd_rand random(1);
  for (int tick = 0; tick < 1000; ++tick) {
    core::Sample sample = vm.Next();
    for (core::VcpuSample& vcpu : sample.vcpus) {
      for (uint64_t& count : vcpu.counts) count = random() * uint64_t{1'000'003};
    }
    writer->AddTick(1, 1, sample, vm.Verdicts());
  }
  ASSERT_TRUE(writer->Flush(timeline::ClockAt(2)).ok());
  const timeline::Bytes bytes = timeline::Concatenate(chunks);
  ASSERT_THAT(chunks, SizeIs(1));
  ASSERT_GT(bytes.size(), 1u << 20);
  std::ofstream(Path("long.vpt"), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const Finished finished = Replay(Path("long.vpt"));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  const Finished local = RunProgram(Vcpulse({"export", Path("long.vpt"), "--format", "jsonl"}));
  const Finished collected =
      RunProgram(Vcpulse({"export", StreamsOf("host-a")[0], "--format", "jsonl"}));
  EXPECT_EQ(std::ranges::count(local.out, '\n'), 999 * 32);
  EXPECT_TRUE(collected.out == local.out);
}

// Two recordings in one file are two streams.
TEST_F(ReplayTo, AFileOfTwoStreams) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  drawn.BeginStream();
  const std::string file = drawn.Finish();
  const Finished finished = Replay(file);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(2));
}

TEST_F(ReplayTo, FromStandardInput) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  const std::string file = drawn.Finish();
  const Finished finished = RunProgram(
      {"sh", "-c", "exec \"$0\" replay - --to \"$1\" --speed max --agent-id host-a < \"$2\"",
       Vcpulse({}).front(), collector_.address(), file});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  ASSERT_THAT(StreamsOf("host-a"), SizeIs(1));
  ExpectEqual(StreamsOf("host-a")[0], file);
}

// Not before it is due; a signal ends it, and that is no failure.
TEST_F(ReplayTo, AtItsOwnPace) {
  DrawnRecording drawn;
  drawn.Draw("P");
  drawn.Flush();
  drawn.Pass(3'600'000'000'000);
  drawn.Draw("P");
  const std::string file = drawn.Finish();
  RunningProgram replay(
      Vcpulse({"replay", file, "--to", collector_.address(), "--agent-id", "host-a"}));
  ASSERT_TRUE(Eventually([this] {
    return StreamsOf("host-a").size() == 1 && !Joined(StreamsOf("host-a")[0]).empty();
  }));
  replay.Signal(SIGINT);
  const Finished finished = replay.Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const std::string first = Joined(StreamsOf("host-a")[0]);
  EXPECT_LT(first.size(), fs::file_size(file));
  EXPECT_THAT(Contents(file), StartsWith(first));
  // A thousand times as fast it takes 3.6 s.
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Replay(file, "host-a", "1000").exit_code, 0);
  EXPECT_GT(absl::Now() - begin, absl::Seconds(3));
  ExpectEqual(StreamsOf("host-a")[0], file);
}

class ReplayRefused : public ReplayTo {
 protected:
  // An agent on another host, connected with what it may send.
  std::unique_ptr<stream::Uplink> Elsewhere(const std::string& agent) const {
    stream::Uplink::Options options;
    options.addresses = {*stream::ParseAddress(collector_.address())};
    options.identity = {.agent_id = agent, .host_name = "elsewhere", .boot_id = "another"};
    auto uplink = stream::Uplink::Start(std::move(options));
    EXPECT_TRUE(uplink.ok()) << uplink.status();
    EXPECT_TRUE((*uplink)->AwaitConnected(std::chrono::seconds(20)).ok());
    return *std::move(uplink);
  }
  void ExpectOneLine(const Finished& finished, const std::string& words) const {
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.err,
              "vcpulse: " + collector_.address() + ": the collector says: " + words + "\n");
  }
};

TEST_F(ReplayRefused, WhereAnotherHostHasTheAgentId) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  const std::string file = drawn.Finish();
  {
    const auto other = Elsewhere("host-a");
    ExpectOneLine(Replay(file),
                  "agent id 'host-a' is in use by host 'elsewhere': give each agent its own "
                  "--agent-id");
  }
  EXPECT_TRUE(Eventually([&] { return Replay(file).exit_code == 0; }));
}

// Where the next chunk is due in a quarter of an hour.
TEST_F(ReplayRefused, WhileItWaitsToPlayTheNextChunk) {
  DrawnRecording drawn;
  drawn.Draw("P");
  drawn.Flush();
  drawn.Draw(std::string(9, 'P'));
  const std::string file = drawn.Finish();
  const auto other = Elsewhere("host-a");
  ExpectOneLine(Replay(file, "host-a", "0.001"),
                "agent id 'host-a' is in use by host 'elsewhere': give each agent its own "
                "--agent-id");
}

TEST_F(ReplayTo, ASignalEndsItWhileNobodyAnswers) {
  DrawnRecording drawn;
  drawn.Draw("P");
  RunningProgram replay(Vcpulse({"replay", drawn.Finish(), "--to", "unix:" + Path("none.sock")}));
  EXPECT_TRUE(
      Eventually([&] { return replay.SoFar().err.find("cannot stream to") != std::string::npos; }));
  replay.Signal(SIGTERM);
  const Finished finished = replay.Wait();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("stopped by a signal before a collector answered\n"));
}

TEST_F(ReplayTo, BadInput) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  const std::string file = drawn.Finish();
  const std::string& to = collector_.address();
  ExpectRefused({"replay", file, "--to", to, "--from", "1s"}, HasSubstr("--to sends the whole"));
  ExpectRefused({"replay", file, "--to", to, "--until", "1s"}, HasSubstr("--to sends the whole"));
  ExpectRefused({"replay", file, "--to", to, "--phase", "a"}, HasSubstr("--to sends the whole"));
  ExpectRefused({"replay", file, "--to", to, "--format", "text"},
                HasSubstr("--format and --to cannot be used together"));
  ExpectRefused({"replay", file, "--to", "1s"}, HasSubstr("--to: "));
  ExpectRefused({"replay", file, "--agent-id", "a"}, HasSubstr("--agent-id: it means nothing"));
  ExpectRefused({"replay", file, "--to", "tcp:127.0.0.1:0"}, HasSubstr("nobody listens on port 0"));
  ExpectRefused({"replay", file, "--to", "tcp:1:2:3"}, HasSubstr("--to: "));
  ExpectRefused({"replay", Path("none.vpt"), "--to", to}, HasSubstr("none.vpt: No such file"));
  std::ofstream(Path("text.vpt")) << "no timeline";
  const Finished text = Replay(Path("text.vpt"));
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("text.vpt is not a vcpulse timeline"));
  EXPECT_THAT(StreamsOf("host-a"), SizeIs(0));
}

TEST_F(ReplayTo, UntilIsTheEndOfAPart) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPPPPPP");
  const Finished finished =
      RunProgram(Vcpulse({"replay", drawn.Finish(), "--speed", "max", "--until", "300ms"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(std::ranges::count(finished.out, '\n'), 4) << finished.out;
}

TEST(ReplayToNobody, IsAnErrorAfterAWhile) {
  DrawnRecording drawn;
  drawn.Draw("PPP");
  const Finished finished = RunProgram(
      Vcpulse({"replay", drawn.Finish(), "--to", "unix:/nowhere/c.sock", "--speed", "max"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("unix:/nowhere/c.sock"));
}

}  // namespace
}  // namespace vcpulse::stream_tests

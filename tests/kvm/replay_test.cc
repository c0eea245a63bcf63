// `vcpulse replay` and `export` as commands: what is written is what was recorded, as seen by
// parsers that are not ours. Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::kvm_tests {
namespace {

using check::DrawnRecording;
using ::testing::AllOf;
using ::testing::HasSubstr;

Finished Replay(const std::string& file, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"replay", file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(Vcpulse(arguments));
}

void ExpectRefused(const std::string& file, const std::vector<std::string>& more,
                   const ::testing::Matcher<std::string>& line) {
  const Finished finished = Replay(file, more);
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, AllOf(::testing::StartsWith("vcpulse: "), line));
  EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
}

std::chrono::milliseconds TimeOf(const std::string& file, const std::string& speed) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Replay(file, {"--speed", speed}).exit_code, 0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               begin);
}

class ReplayCommand : public ::testing::Test {
 protected:
  ReplayCommand() {
    drawn_.Begin(1, {.vcpus = {0, 1}});
    drawn_.Draw(std::vector<std::string>{"PPPHHH", "SSSSUN"});
    drawn_.Draw("[boot]");
    drawn_.Draw(std::vector<std::string>{"PP", "HH"});
    file_ = drawn_.Finish();
  }

  DrawnRecording drawn_;
  std::string file_;
};

TEST_F(ReplayCommand, TextSaysEachTickAndEvent) {
  const Finished played = Replay(file_, {"--speed", "max"});
  EXPECT_EQ(played.exit_code, 0);
  EXPECT_EQ(played.err, "");
  EXPECT_THAT(played.out, AllOf(HasSubstr("    0.100s  guest1  #S  IPC 1.25\n"),
                                HasSubstr("    0.600s  marker 'boot'\n")));
  EXPECT_EQ(std::ranges::count(played.out, '\n'), 10);
  // At a pace, and through a pipe, it is the same.
  EXPECT_EQ(Replay(file_, {"--speed", "100"}).out, played.out);
  EXPECT_EQ(RunProgram({"sh", "-c", "cat \"$1\" | \"$0\" replay - --speed max", Vcpulse({}).front(),
                        file_})
                .out,
            played.out);
}

TEST_F(ReplayCommand, TheSpeedIsKept) {
  EXPECT_GE(TimeOf(file_, "1"), std::chrono::milliseconds(800));
  EXPECT_GE(TimeOf(file_, "2"), std::chrono::milliseconds(400));
}

TEST_F(ReplayCommand, RowsAreThoseOfTheExport) {
  const Finished exported = RunProgram(Vcpulse({"export", file_, "--format", "jsonl"}));
  ASSERT_EQ(exported.exit_code, 0);
  EXPECT_FALSE(exported.out.empty());
  EXPECT_EQ(Replay(file_, {"--format", "jsonl", "--speed", "max"}).out, exported.out);
  EXPECT_EQ(Replay(file_, {"--format", "jsonl", "--speed", "50"}).out, exported.out);
}

TEST_F(ReplayCommand, APart) {
  const Finished played = Replay(file_, {"--from", "250ms", "--until", "450ms", "--speed", "max"});
  EXPECT_EQ(played.out,
            "    0.300s  guest1  #S  IPC 1.25\n"
            "    0.400s  guest1  .S  IPC 0.50\n");
  EXPECT_THAT(Replay(file_, {"--phase", "boot", "--speed", "max"}).out, HasSubstr("0.800s"));
  ExpectRefused(file_, {"--from", "1h"}, HasSubstr("no tick in the part"));
  ExpectRefused(file_, {"--phase", "nope"}, HasSubstr("no phase "));
}

TEST_F(ReplayCommand, WrongUse) {
  ExpectRefused(file_, {"--speed", "fast"}, HasSubstr("--speed: 'fast' is not a speed"));
  ExpectRefused(file_, {"--speed", "0"}, HasSubstr("--speed: '0' is not a speed"));
  ExpectRefused(file_, {"--format", "csv"}, HasSubstr("--format: 'csv' is not known"));
  ExpectRefused("/nonexistent", {}, HasSubstr("/nonexistent"));
}

TEST_F(ReplayCommand, TwoRecordingsInOneFile) {
  DrawnRecording two;
  two.Draw("PP");
  two.BeginStream();
  const std::string both = two.Finish();
  for (const char* format : {"text", "jsonl", "delimited"}) {
    const Finished played = Replay(both, {"--speed", "max", "--format", format});
    EXPECT_EQ(played.exit_code, 2);
    EXPECT_THAT(played.err, HasSubstr("a second recording begins"));
  }
}

TEST_F(ReplayCommand, ASignalEndsItInOrder) {
  RunningProgram program(Vcpulse({"replay", file_, "--speed", "0.001"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  program.Signal(SIGINT);
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished = program.Wait();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("0.000s  guest1"));  // what was due was written
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(ReplayCommand, AFullDeviceIsToldAndAClosedPipeIsNone) {
  const Finished full = RunProgram(
      {"sh", "-c", "\"$0\" replay \"$1\" --speed max > /dev/full", Vcpulse({}).front(), file_});
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_THAT(full.err, HasSubstr("No space left"));
  const Finished head =
      RunProgram({"sh", "-c", "(\"$0\" replay \"$1\" --speed 20; echo $? >&2) | head -n 1",
                  Vcpulse({}).front(), file_});
  EXPECT_EQ(head.err, "0\n");
}

// Python's json, csv and protobuf packages, the published schema alone: each value of the records
// equals that of the rows.
class OtherParsers : public ::testing::TestWithParam<const char*> {};

TEST_P(OtherParsers, SeeTheSameValues) {
  DrawnRecording drawn;
  drawn.Name(1, "a,\"b\"\xc3\xa4");
  drawn.Begin(1, {.vcpus = {0, 1}});
  drawn.Draw(std::vector<std::string>{"PpH?", "SNUR"});
  drawn.Draw("^");
  drawn.Draw(std::vector<std::string>{"PP", "HH"});
  const std::string own = drawn.Finish();
  const std::string file =
      GetParam() == nullptr ? own : VCPULSE_TEST_DATA + std::string(GetParam());
  const Finished checked =
      RunProgram({VCPULSE_OTHER_PARSERS, Vcpulse({}).front(), VCPULSE_PROTO_FOLDER, file});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("rows agree"));
}

INSTANTIATE_TEST_SUITE_P(Files, OtherParsers,
                         ::testing::Values(nullptr, "/timeline-v1.vpt", "/timeline-v2.vpt"));

}  // namespace
}  // namespace vcpulse::kvm_tests

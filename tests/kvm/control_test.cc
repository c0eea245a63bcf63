// Control of a running recording: the commands as a harness gives them, and what the timeline
// keeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/qemu_guest.h"
#include "tests/kvm/recorded_timeline.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

QemuGuest StartGuest(const std::string& name) {
  auto guest = QemuGuest::Start({.vcpus = 2, .name = name, .debug_threads = true});
  if (!guest.ok()) ADD_FAILURE() << guest.status();
  return *std::move(guest);
}

std::vector<std::string> Names(const Timeline& timeline) {
  std::vector<std::string> names;
  for (const v1::Marker& marker : timeline.markers) names.push_back(marker.name());
  return names;
}

// Of commands that are refused before they ask, and of what needs no guest.
class ControlCommands : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_.Path("out")); }

  std::vector<std::string> Record(std::vector<std::string> more) const {
    std::vector<std::string> all = Vcpulse({"record", "-o", output_, "--control", socket_});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Finished Ask(std::vector<std::string> request) const {
    request.insert(request.end(), {"--control", socket_});
    return RunProgram(Vcpulse(std::move(request)));
  }

  void ExpectDone(const std::vector<std::string>& request) const {
    const Finished finished = Ask(request);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.err, "");
  }

  static void ExpectEnded(RunningProgram& program) {
    const Finished finished = program.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
  }

  static void ExpectRefused(const Finished& finished, const std::string& why) {
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, AllOf(::testing::StartsWith("vcpulse: "), HasSubstr(why)));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }

  fakes::ProcDir folder_;
  std::string output_ = folder_.Path("out/x.vpt");
  std::string socket_ = folder_.Path("control");
};

// Of a recording of a real guest.
class Control : public ControlCommands {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoKvm(); !why.empty()) GTEST_SKIP() << why;
    ControlCommands::SetUp();
  }

  json::object Status() const {
    const Finished finished = Ask({"status", "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    json::error_code error;
    const json::value value = json::parse(finished.out, error);
    EXPECT_TRUE(!error && value.is_object()) << finished.out;
    return value.is_object() ? value.get_object() : json::object();
  }

  // Whether it has sampled the two vCPUs `more` times more within kLong.
  bool Samples(uint64_t more) const {
    const uint64_t before = Status()["vcpu_samples"].to_number<uint64_t>();
    return Eventually(
        [&] { return Status()["vcpu_samples"].to_number<uint64_t>() >= before + 2 * more; });
  }
};

TEST_F(Control, MarksPausesResumesAndStops) {
  const QemuGuest guest = StartGuest("web");
  RunningProgram record(Record({"--vm", "web", "-i", "20ms"}));
  ExpectDone({"mark", "größe 1", "--wait", "30s"});
  EXPECT_TRUE(Samples(5));
  ExpectRefused(Ask({"resume"}), "the recording is not paused");
  ExpectDone({"pause"});
  ExpectRefused(Ask({"pause"}), "the recording is paused already");
  ExpectDone({"mark", "between"});
  const json::object paused = Status();
  EXPECT_EQ(paused.at("state").as_string(), "paused");
  EXPECT_EQ(paused.at("phase").as_string(), "between");
  EXPECT_EQ(paused.at("markers").to_number<int>(), 2);
  ASSERT_EQ(paused.at("vms").as_array().size(), 1u);
  const json::object& web = paused.at("vms").as_array()[0].as_object();
  EXPECT_EQ(web.at("name").as_string(), "web");
  EXPECT_EQ(web.at("pid").to_number<int>(), guest.pid());
  EXPECT_EQ(web.at("vcpus").to_number<int>(), 2);
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(Status().at("vcpu_samples"), paused.at("vcpu_samples"));
  ExpectDone({"resume"});
  ExpectDone({"mark", "größe 1"});
  EXPECT_TRUE(Samples(5));
  EXPECT_THAT(Ask({"status"}).out,
              AllOf(HasSubstr("recording, "), HasSubstr("größe 1 (3 markers)"), HasSubstr("web"),
                    HasSubstr(output_), HasSubstr("\nreader: ")));
  ExpectDone({"stop"});
  // Complete as soon as the answer is there.
  const Timeline timeline = ReadBack(output_);
  EXPECT_EQ(timeline.end_reason, "control");
  EXPECT_TRUE(timeline.report.ended_in_order);
  ExpectEnded(record);
  EXPECT_FALSE(fs::exists(socket_));

  EXPECT_THAT(Names(timeline), ElementsAre("größe 1", "between", "größe 1"));
  const auto pauses = timeline.Of(v1::LifeCycle::KIND_RECORDING_PAUSED);
  const auto resumes = timeline.Of(v1::LifeCycle::KIND_RECORDING_RESUMED);
  ASSERT_EQ(pauses.size(), 1u);
  ASSERT_EQ(resumes.size(), 1u);
  EXPECT_GT(timeline.markers[1].mono_ns(), pauses[0].mono_ns());
  EXPECT_LT(timeline.markers[1].mono_ns(), resumes[0].mono_ns());
  ASSERT_EQ(timeline.sets.size(), 2u);
  size_t after = 0;
  for (const Timeline::Tick& tick : timeline.ticks) {
    const int64_t last_read_ns = tick.sample.vcpus.back().read_end_ns;
    const bool before_pause = last_read_ns <= pauses[0].mono_ns();
    EXPECT_TRUE(before_pause || tick.sample.wake_ns >= resumes[0].mono_ns());
    EXPECT_EQ(tick.epoch, before_pause ? 1u : 2u);
    after += before_pause ? 0 : 1;
  }
  EXPECT_GE(after, 5u);
}

// It is written within a second, or so long as a busy machine takes for it; no command asks for it.
TEST_F(Control, AMarkThatWasWrittenSurvivesAKill) {
  const QemuGuest guest = StartGuest("web");
  RunningProgram record(Record({"--vm", "web"}));
  ExpectDone({"mark", "boot", "--wait", "30s"});
  EXPECT_TRUE(Eventually([&] { return !Names(ReadSoFar(output_)).empty(); }));
  record.Signal(SIGKILL);
  EXPECT_EQ(record.Wait().exit_code, 128 + SIGKILL);
  EXPECT_THAT(Names(ReadSoFar(output_)), ElementsAre("boot"));

  // It left its socket over, which the next one replaces.
  ExpectRefused(Ask({"status"}), "has ended");
  RunningProgram next(Record({"--vm", "web"}));
  ExpectDone({"mark", "again", "--wait", "30s"});
  ExpectDone({"stop"});
  ExpectEnded(next);
  EXPECT_THAT(Names(ReadBack(output_)), ElementsAre("again"));
}

TEST_F(Control, AGuestThatEndsInAPauseEndsTheRecording) {
  QemuGuest guest = StartGuest("web");
  RunningProgram record(Record({"--vm", "web"}));
  ExpectDone({"pause", "--wait", "30s"});
  guest.Kill();
  ExpectEnded(record);
  const Timeline timeline = ReadBack(output_);
  EXPECT_EQ(timeline.end_reason, "vm-end");
  EXPECT_EQ(timeline.Of(v1::LifeCycle::KIND_VM_ENDED).size(), 1u);
}

TEST_F(Control, AGuestThatStartsInAPauseIsRecordedAfterIt) {
  RunningProgram record(Record({"--all", "-i", "20ms"}));
  ExpectDone({"pause", "--wait", "30s"});
  const QemuGuest guest = StartGuest("late-guest");
  ExpectDone({"resume"});
  EXPECT_TRUE(Samples(3));
  ExpectDone({"stop"});
  ExpectEnded(record);
  const Timeline timeline = ReadBack(output_);
  bool recorded = false;
  for (const v1::VcpuSet& set : timeline.sets) {
    recorded = recorded || set.instance().pid() == static_cast<uint32_t>(guest.pid());
  }
  EXPECT_TRUE(recorded);
}

TEST_F(Control, EachLineOfStandardInputIsAMarker) {
  const QemuGuest guest = StartGuest("web");
  const Finished finished =
      RunProgram({"sh", "-c",
                  absl::StrCat("(echo boot; echo; echo load phase; sleep 1; echo boot) | ",
                               Vcpulse({}).front(), " record --vm web -d 2s --phase-from-stdin -o ",
                               output_)});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("vcpulse: a line of standard input is not a marker and is "
                                      "skipped: column 1: a marker needs a name"));
  const Timeline timeline = ReadBack(output_);
  ASSERT_THAT(Names(timeline), ElementsAre("boot", "load phase", "boot"));
  EXPECT_GT(timeline.markers[2].mono_ns() - timeline.markers[1].mono_ns(), 500'000'000);
  EXPECT_EQ(timeline.end_reason, "duration") << "the end of the input is not the recording's";
}

// The command's own folder is another one, so that the path it is told must be absolute.
TEST_F(ControlCommands, ACommandFindsTheSocketInItsEnvironment) {
  const std::string vcpulse = Vcpulse({}).front();
  const Finished finished =
      RunProgram({"sh", "-c",
                  absl::StrCat("cd ", folder_.Path("out").string(), " && ", vcpulse,
                               " record --control c -o x.vpt -- sh -c 'cd / && ", vcpulse,
                               " mark boot && ", vcpulse, " status --timeout 20s'")});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("phase: boot (1 marker)"));
  EXPECT_THAT(Names(ReadBack(output_)), ElementsAre("boot"));
}

TEST_F(ControlCommands, StopEndsTheRecordingBesideACommandThatGoesOn) {
  const std::string vcpulse = Vcpulse({}).front();
  const Finished finished = RunProgram(Record(
      {"--", "sh", "-c",
       absl::StrCat(vcpulse, " mark x && ", vcpulse, " stop && ", vcpulse, " status; exit 7")}));
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_THAT(finished.err, HasSubstr("no recording listens here"));
  EXPECT_EQ(ReadBack(output_).end_reason, "control");
}

TEST_F(ControlCommands, WithoutARecordingTheySayWhatIsMissing) {
  ExpectRefused(RunProgram({"env", "-u", "VCPULSE_CONTROL", Vcpulse({}).front(), "pause"}),
                "which recording? Give --control PATH");
  ExpectRefused(Ask({"mark", "x"}), "no recording listens here; start it with");
  ExpectRefused(Ask({"mark", "a\tb"}), "NAME: column 2: the name of a marker");
  ExpectRefused(Ask({"mark", "x", "--timeout", "0s"}), "--timeout: must be more than 0");
  ExpectRefused(Ask({"mark", "x", "--wait", "5"}), "--wait: '5' has no unit");
}

TEST_F(ControlCommands, ARecordingWithoutItsSocketDoesNotBegin) {
  folder_.Write("control", "mine");
  ExpectRefused(RunProgram(Record({"--all", "-d", "1s"})), "something else lies there");
  EXPECT_TRUE(fs::is_empty(folder_.Path("out"))) << "a partial file was left";
  socket_ = folder_.Path(std::string(120, 'x'));
  ExpectRefused(RunProgram(Record({"--all", "-d", "1s"})), "--control: control socket");
  socket_ = folder_.Path("other");
  for (const std::string& output : {socket_, folder_.Path("out/../other").string()}) {
    const Finished same =
        RunProgram(Vcpulse({"record", "--all", "-d", "1s", "-o", output, "--control", socket_}));
    ExpectRefused(same, "is a path that --output writes to");
  }
  ExpectRefused(RunProgram(Vcpulse({"record", "--all", "-d", "1s", "-o", folder_.Path("x"),
                                    "--control", folder_.Path("x.old")})),
                "is a path that --output writes to");
  ExpectRefused(RunProgram({"sh", "-c",
                            absl::StrCat("exec ", Vcpulse({}).front(), " record --all -d 1s -o ",
                                         output_, " --phase-from-stdin <&-")}),
                "--phase-from-stdin: standard input is closed");
  const Finished both = RunProgram(Record({"--phase-from-stdin", "--", "true"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--phase-from-stdin and -- CMD cannot be used together"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

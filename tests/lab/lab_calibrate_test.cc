// `vcpulse calibrate` on a real PMU with an emulated clock: what such a host can show is right, and
// what it cannot is said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "tests/kvm/run_program.h"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Calibrate : public ::testing::Test {
 protected:
  static std::string Text(const std::string& name) {
    return ReadText(OutputPath("calibrate-1", name));
  }
  const boost::json::value report_ = boost::json::parse(Text("calibrate.json"));

  // What a classifier said of a program, as a share of the time.
  double Of(const std::string& program, const std::string& classifier,
            const std::string& band) const {
    for (const boost::json::value& scene : report_.at("scenes").as_array()) {
      if (scene.at("name").as_string() != program) continue;
      return scene.at_pointer("/" + classifier + "/" + band).to_number<double>();
    }
    ADD_FAILURE() << "no program " << program;
    return 0;
  }

  double Number(const std::string& path) const {
    return report_.at_pointer(path).to_number<double>();
  }
};

TEST_F(Calibrate, HaltedGuestsAreHalted) {
  for (const std::string classifier : {"evidence", "ipc-bands"}) {
    EXPECT_GE(Of("halt", classifier, "halted"), 0.9) << classifier;
    // Woken each millisecond, at the very time of a tick: whether it waited then is unknown.
    EXPECT_GE(Of("tick", classifier, "halted"), 0.5) << classifier;
    EXPECT_NEAR(Of("tick", classifier, "halted") + Of("tick", classifier, "unknown"), 1, 0.01)
        << classifier;
    EXPECT_LE(Number("/" + classifier + "/confusion/spinning/halted"), 0.05) << classifier;
    EXPECT_LE(Number("/" + classifier + "/confusion/productive/halted"), 0.05) << classifier;
  }
}

TEST_F(Calibrate, RunsAllThatTheHostCanRun) {
  EXPECT_EQ(boost::json::serialize(report_.at("left_out")),
            R"(["chase-256m: it needs 1 GiB of available memory"])");
}

// Whether it halts or spins is the host's affair.
TEST_F(Calibrate, WaitsAreJudgedInNoTotal) {
  EXPECT_EQ(Of("wait", "evidence", "productive"), 0);
  for (const boost::json::value& scene : report_.at("scenes").as_array()) {
    if (scene.at("name") != "wait") continue;
    EXPECT_EQ(scene.at("truth").as_string(), "waiting");
    EXPECT_GT(scene.at("turns_per_second").to_number<double>(), 0);
  }
}

// The host's clock is the other witness; the guest's own turns show that its clock has one rate.
TEST_F(Calibrate, ResidencyIsTheTimeInTheGuest) {
  size_t duties = 0;
  for (const boost::json::value& scene : report_.at("scenes").as_array()) {
    if (!scene.at("truth").is_null()) continue;
    ++duties;
    EXPECT_NEAR(scene.at("residency").to_number<double>(),
                scene.at("inside_share").to_number<double>(), 0.01)
        << scene.at("name");
    EXPECT_GT(scene.at("turns_per_second").to_number<double>(), 0) << scene.at("name");
  }
  EXPECT_EQ(duties, 6u);
  EXPECT_NEAR(Number("/evidence/smallest_seen"), 0.05, 0.02);
}

// Within two ticks of 20 ms.
TEST_F(Calibrate, AHaltIsFoundAtOnce) {
  for (const boost::json::value& scene : report_.at("scenes").as_array()) {
    if (scene.at("name") != "halt") continue;
    EXPECT_LE(scene.at_pointer("/evidence/found_after_s").to_number<double>(), 0.045);
    return;
  }
  FAIL() << "no guest was halted";
}

TEST_F(Calibrate, SaysThatItsIpcMeansNothing) {
  EXPECT_EQ(report_.at("ipc_tells_programs_apart"), false);
  EXPECT_TRUE(report_.at_pointer("/evidence/right").is_null());
  EXPECT_THAT(Text("calibrate.out"), HasSubstr("SPINNING and PRODUCTIVE mean nothing on this"));
}

// Nor is there a profile to be made of it.
TEST_F(Calibrate, InstallsNothingThatWasNotMeasured) {
  EXPECT_EQ(Text("code.txt"), "1\n");
  EXPECT_THAT(Text("said.txt"), HasSubstr("vcpulse: no profile was measured: IPC does not "
                                          "distinguish programs on this host\n"));
  EXPECT_TRUE(report_.at("measured_profile").is_null());
  EXPECT_EQ(Text("installed.txt"), "");
}

TEST_F(Calibrate, KeepsTheGuestsToTheCpus) {
  EXPECT_EQ(boost::json::serialize(report_.at("on_cpus")), "[0]");
  EXPECT_THAT(Text("calibrate.out"), HasSubstr("; on CPUs 0;"));
}

TEST_F(Calibrate, ItsReportHasNoIdentity) {
  const std::string json = Text("calibrate.json");
  EXPECT_THAT(json, Not(HasSubstr("host_name")));
  EXPECT_THAT(json, Not(HasSubstr("boot_id")));
  EXPECT_THAT(json, Not(HasSubstr("uuid")));
}

TEST_F(Calibrate, AnInterruptDoesNotWaitForTheProgramToEnd) {
  EXPECT_THAT(Text("interrupted.txt"), HasSubstr("vcpulse: calibrate: stopped after 0 of "));
  EXPECT_LT(std::stod(Text("interrupted.seconds")), 10);
}

// The timeline has a phase for each program.
TEST_F(Calibrate, ItsTimelineCanBeReported) {
  const kvm_tests::Finished finished = kvm_tests::RunProgram(kvm_tests::Vcpulse(
      {"report", "--phase", "halt", "--brief", OutputPath("calibrate-1", "calibrate.vpt")}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("of it (phase halt, 1 span)"));
}

}  // namespace
}  // namespace vcpulse::lab

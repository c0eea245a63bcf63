#include "monitor/calibrate/calibration.h"

#include <string>
#include <utility>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/monitor/calibrate/recorded_scenes.h"

namespace vcpulse::calibrate {
namespace {

using core::Band;
using core::Classifier;
using ::testing::HasSubstr;
using ::testing::Not;

const Said& IpcBands(const SceneOutcome& scene) {
  return scene.said[static_cast<size_t>(Classifier::kIpcBands)];
}

TEST(Calibration, HoldsBandsAgainstTheTruth) {
  Recorded recorded;
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  recorded.Draw(kPrograms[1], "HSSSSSSSSS", "PPPPPPPPPP");
  recorded.Draw(kPrograms[2], "PPPPS", "HHHHH");
  recorded.Draw(kPrograms[3], "SSSSS", "HHHHH");
  const Calibration calibration = recorded.Measured();
  ASSERT_EQ(calibration.scenes.size(), 4u);
  EXPECT_EQ(calibration.scenes[0].Truth(), Band::kHalted);
  EXPECT_EQ(IpcBands(calibration.scenes[0]).Share(Band::kHalted), 1);
  EXPECT_EQ(IpcBands(calibration.scenes[0]).TotalNs(), 5 * kDrawnTick_ns);
  const Said& spins = IpcBands(calibration.scenes[1]);
  EXPECT_DOUBLE_EQ(*spins.Share(Band::kSpinning), 0.9);
  EXPECT_EQ(spins.Most(), Band::kSpinning);
  EXPECT_EQ(spins.found_after_ns, 2 * kDrawnTick_ns);
  EXPECT_DOUBLE_EQ(*calibration.Of(Classifier::kIpcBands, Band::kProductive).Share(Band::kSpinning),
                   0.2);
  EXPECT_DOUBLE_EQ(*calibration.RightShare(Classifier::kIpcBands), (5 + 9 + 4 + 5) / 25.0);
}

// A window that began in the scene before it is a mixture and of neither.
TEST(Calibration, TakesWholeWindowsAlone) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SSS", "HHH");
  recorded.Draw(kPrograms[2], "PPP", "HHH");
  Calibration whole = recorded.Measured();
  EXPECT_EQ(IpcBands(whole.scenes[1]).TotalNs(), 3 * kDrawnTick_ns);

  Recorded shifted;
  shifted.Draw(kPrograms[1], "SSS", "HHH");
  shifted.Draw(kPrograms[2], "PPP", "HHH");
  shifted.Shift(kDrawnTick_ns / 2);
  Calibration halves = shifted.Measured();
  EXPECT_EQ(IpcBands(halves.scenes[0]).TotalNs(), 2 * kDrawnTick_ns);
  EXPECT_EQ(IpcBands(halves.scenes[1]).TotalNs(), 2 * kDrawnTick_ns);
}

TEST(Calibration, OfALockBothVcpusCount) {
  Recorded recorded;
  recorded.Draw(kPrograms[4], "SSSSS", "PPPPP");
  EXPECT_EQ(IpcBands(recorded.Measured().scenes[0]).Share(Band::kSpinning), 0.5);
}

// 1 GHz, and half of the time: by the host's clock and by its cycles. In that half it made fewer
// turns per second than the whole loop.
TEST(Calibration, HoldsResidencyAgainstTheHostsClock) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SSSSSSSSSS", "HHHHHHHHHH", 1000);
  recorded.Draw(kPrograms[1], "SHSHSHSHSH", "HHHHHHHHHH", 240, 0.48);
  const Calibration calibration = recorded.Measured();
  EXPECT_FALSE(calibration.scenes[1].Truth());
  EXPECT_DOUBLE_EQ(*calibration.scenes[1].InsideShare(), 0.48);
  EXPECT_DOUBLE_EQ(*calibration.scenes[1].Residency(), 0.5);
  EXPECT_DOUBLE_EQ(*calibration.scenes[0].TurnsPerSecond(), 1000);
  EXPECT_DOUBLE_EQ(*calibration.scenes[1].TurnsPerSecond(), 500);
  EXPECT_THAT(
      ToText(calibration),
      HasSubstr("\n       48.0%     50.0% +2.00 points 50.0% of the loop's              50.0%\n"));
  EXPECT_DOUBLE_EQ(*calibration.scenes[0].CyclesPerTurn(), 1e9 / 1000);
}

// Time that was not measured, as between two epochs, is not time without work.
TEST(Calibration, ResidencyOfAShareOfTimeIsWholeOrNotTold) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SHSHS^.SHS", "HHHHH.HHH", 240, 0.5);
  const Calibration calibration = recorded.Measured();
  EXPECT_FALSE(calibration.scenes[0].Residency());
  EXPECT_THAT(ToText(calibration), HasSubstr("\n       50.0%         -     - "));
}

// Nor is a window that lies in two scenes of either.
TEST(Calibration, AWindowOfTwoScenesIsOfNeither) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SHSHS", "HHHHH", 240, 0.5);
  recorded.Draw(kPrograms[1], "SHSHS", "HHHHH", 240, 0.5);
  recorded.Shift(kDrawnTick_ns / 2);
  const Calibration calibration = recorded.Measured();
  EXPECT_FALSE(calibration.scenes[0].Residency());
}

// Turns count from begin to end, and so does residency, wherever windows begin.
TEST(Calibration, AShareOfTimeIsOfTheWholeScene) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "HSSHHSHH", "HHHHHHHH", 1000, 0.5);
  recorded.Rest("H", "H");
  recorded.Shift(kDrawnTick_ns / 2);
  EXPECT_DOUBLE_EQ(*recorded.Measured().scenes[0].Residency(), 3.0 / 8);
}

// It ends at the largest one that is not seen, whatever is by chance below it; half of the time
// HALTED is not seen.
TEST(Calibration, TheSmallestShareThatIsSeen) {
  const auto draw = [](Recorded& recorded) {
    recorded.Draw(kPrograms[1], "SSSSSSSHHH", "HHHHHHHHHH", 700, 0.7);
    recorded.Draw(kPrograms[1], "SSSSSSSSHH", "HHHHHHHHHH", 800, 0.8);
    recorded.Draw(kPrograms[1], "SSSSSHHHHH", "HHHHHHHHHH", 600, 0.6);
    recorded.Draw(kPrograms[1], "SSSSSSHHHH", "HHHHHHHHHH", 500, 0.5);
  };
  Recorded recorded;
  draw(recorded);
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  EXPECT_DOUBLE_EQ(*recorded.Measured().SmallestSeen(Classifier::kIpcBands), 0.7);
  // Nor does one see anything that never says HALTED.
  Recorded blind;
  draw(blind);
  blind.Draw(kPrograms[0], "SSSSS", "PPPPP");
  EXPECT_FALSE(blind.Measured().SmallestSeen(Classifier::kIpcBands));
}

// Where everything runs at one IPC, bands by it are by chance, and no share of right ones is given.
TEST(Calibration, SaysWhereIpcMeansNothing) {
  Recorded same;
  for (const int program : {1, 2, 3}) same.Draw(kPrograms[program], "SSSSS", "HHHHH");
  const Calibration emulated = same.Measured();
  EXPECT_EQ(emulated.IpcTellsProgramsApart(), false);
  EXPECT_FALSE(emulated.RightShare(Classifier::kIpcBands));
  const std::string text = ToText(emulated);
  EXPECT_THAT(text, HasSubstr("SPINNING and PRODUCTIVE mean nothing on this host"));
  EXPECT_LT(text.find("mean nothing"), text.find("truth")) << "before the numbers";

  Recorded different;
  different.Draw(kPrograms[1], "SSSSS", "HHHHH");
  different.Draw(kPrograms[2], "PPPPP", "HHHHH");
  EXPECT_FALSE(different.Measured().IpcTellsProgramsApart());
  Recorded three;
  three.Draw(kPrograms[1], "SSSSS", "HHHHH");
  three.Draw(kPrograms[2], "PPPPP", "HHHHH");
  three.Draw(kPrograms[3], "SSSSS", "HHHHH");
  const Calibration real = three.Measured();
  EXPECT_EQ(real.IpcTellsProgramsApart(), true);
  EXPECT_THAT(ToText(real), Not(HasSubstr("mean nothing")));
  EXPECT_THAT(ToText(real), HasSubstr("ipc-bands was right in 100.0% of the time\n"));

  // What halts is by chance at any IPC.
  Recorded halted;
  halted.Draw(kPrograms[0], "PPPPP", "HHHHH");
  halted.Draw(kPrograms[1], "SSSSS", "HHHHH");
  halted.Draw(kPrograms[3], "SSSSS", "HHHHH");
  EXPECT_FALSE(halted.Measured().IpcTellsProgramsApart());
}

// Time without a verdict is time that was not judged right.
TEST(Calibration, NoVerdictIsNotRight) {
  Said said;
  said.band_ns[static_cast<size_t>(Band::kNone)] = 600;
  said.band_ns[static_cast<size_t>(Band::kHalted)] = 400;
  EXPECT_DOUBLE_EQ(*said.Share(Band::kHalted), 0.4);
  EXPECT_EQ(said.Most(), Band::kNone);
}

// One program that this KVM cannot run costs no other its row, and is named.
TEST(Calibration, WhatCannotRunIsLeftOutAndSaid) {
  std::vector<Scene> scenes = {{.name = "loop"}, {.name = "vector"}, {.name = "halt"}};
  Recorded recorded;
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  Calibration calibration = recorded.Measured();
  const auto left_out = LeaveOut(scenes, [](const Scene& scene) {
    return scene.name == "vector" ? absl::UnimplementedError("no vectors") : absl::OkStatus();
  });
  ASSERT_TRUE(left_out.ok());
  calibration.left_out = *left_out;
  ASSERT_EQ(scenes.size(), 2u);
  EXPECT_EQ(scenes[1].name, "halt");
  EXPECT_THAT(ToText(calibration), HasSubstr("\nleft out: vector: no vectors\n"));
  EXPECT_EQ(boost::json::parse(ToJson(calibration)).at_pointer("/left_out/0").as_string(),
            "vector: no vectors");
}

// One that should run and does not is no matter of this host's CPU.
TEST(Calibration, AGuestThatFailsIsAnError) {
  const auto all = [](absl::Status status) {
    std::vector<Scene> scenes = {{.name = "loop"}, {.name = "alu"}};
    return LeaveOut(scenes, [&](const Scene&) { return status; }).status();
  };
  EXPECT_EQ(all(absl::InternalError("it crashed")), absl::UnavailableError("loop: it crashed"));
  EXPECT_EQ(all(absl::DeadlineExceededError("it hangs")), absl::UnavailableError("loop: it hangs"));
  EXPECT_EQ(all(absl::UnimplementedError("no such instruction")),
            absl::UnavailableError("this KVM runs none of the guests"));
}

// The drawn session is of "host1".
TEST(Calibration, ItsReportNamesNoHost) {
  Recorded recorded;
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  const Calibration calibration = recorded.Measured();
  ASSERT_EQ(calibration.session.host_name(), "host1");
  const std::string json = ToJson(calibration);
  EXPECT_THAT(json, Not(HasSubstr("host1")));
  EXPECT_THAT(ToText(calibration), Not(HasSubstr("host1")));
  const boost::json::value parsed = boost::json::parse(json);
  EXPECT_EQ(parsed.at_pointer("/ipc-bands/confusion/halted/halted").to_number<double>(), 1);
  EXPECT_TRUE(parsed.at_pointer("/ipc-bands/confusion/spinning/halted").is_null());
  EXPECT_TRUE(parsed.at_pointer("/scenes/0/ipc").is_null());
}

TEST(Calibration, ItsReportNamesNoProfileOfAUser) {
  Recorded recorded;
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  Calibration calibration = recorded.Measured();
  for (const auto& [name, named] :
       {std::pair("db1.example.com", "custom"), std::pair("amd-zen4", "amd-zen4")}) {
    calibration.profile = name;
    EXPECT_EQ(boost::json::parse(ToJson(calibration)).at("profile").as_string(), named);
  }
}

}  // namespace
}  // namespace vcpulse::calibrate

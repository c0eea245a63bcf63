// What of a calibration goes into a profile.
#include "monitor/calibrate/measured_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "monitor/profile/installed.h"
#include "tests/fakes/proc_dir.h"
#include "tests/unit/monitor/calibrate/recorded_scenes.h"

namespace vcpulse::calibrate {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const kvm::CpuIdentity kSkylake{
    .vendor = "GenuineIntel", .family = 6, .model = 0x55, .stepping = 4, .microcode = "0x2007006"};

const Program kPause{.name = "pause", .truth = Truth::kSpinning};
const Program kTicket{.name = "ticket", .truth = Truth::kSpinning, .vcpus = 2};

class MeasuredProfiles : public ::testing::Test {
 protected:
  // A loop at IPC 2, work at 4, and a spin of PAUSE.
  MeasuredProfiles() {
    recorded_.Draw(kPrograms[1], "22222", "HHHHH", 10'000'000);
    recorded_.Draw(kPrograms[2], "44444", "HHHHH");
    // Drawn spins run at IPC 0.5, and are to be slow ones.
    base_.name = "mine";
    base_.values.evidence.loop_ipc_from = 0.6;
    base_.values.evidence.spin_ipcs = 2;
    base_.origins["spin_ipc[1]"] = "of another CPU";
  }

  absl::StatusOr<profile::Profile> Profile() {
    return MeasuredProfile(recorded_.Measured(), base_, kSkylake, "this host");
  }

  static std::vector<double> Ends(const profile::Profile& profile) {
    std::vector<double> ends;
    for (const core::IpcRange& range : profile.values.evidence.SpinIpcs()) {
      ends.insert(ends.end(), {range.from, range.to});
    }
    return ends;
  }

  Recorded recorded_;
  profile::Profile base_ = profile::BuiltIn().front();
};

TEST_F(MeasuredProfiles, HaveTheIpcOfThePauseSpin) {
  recorded_.Draw(kPause, "SSSSS", "HHHHH", 10'000);
  const auto profile = Profile();
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(Ends(*profile), ElementsAre(0.375, 0.625));
  EXPECT_EQ(profile->name, "measured-genuineintel-6-85-4");
  EXPECT_EQ(profile->origins.at("spin_ipc[0]"),
            "measured on this host: IPC 0.5 in pause; the range is 25 % to either side");
  EXPECT_FALSE(profile->origins.contains("spin_ipc[1]"));
  ASSERT_TRUE(profile->cpu);
  EXPECT_TRUE(profile->cpu->Matches(kSkylake));
  kvm::CpuIdentity other = kSkylake;
  other.stepping = 7;
  EXPECT_FALSE(profile->cpu->Matches(other));
  EXPECT_EQ(profile->spin_ipc_cpu, profile->cpu);
  // All else is as it was, and it can be read again.
  profile::Profile without = *profile;
  without.values.evidence.spin_ipc = base_.values.evidence.spin_ipc;
  without.values.evidence.spin_ipcs = base_.values.evidence.spin_ipcs;
  EXPECT_EQ(without.values, base_.values);
  const auto again = profile::Parse(profile::ToJson(*profile), "x.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->values, profile->values);
}

TEST_F(MeasuredProfiles, SpinsOfAboutTheSameIpcAreOneRange) {
  recorded_.Draw(kPause, "SSSSS", "HHHHH");
  recorded_.Draw(kTicket, "SSSSS", "SSSSS");
  const auto profile = Profile();
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(Ends(*profile), ElementsAre(0.375, 0.625));
  EXPECT_THAT(profile->origins.at("spin_ipc[0]"), HasSubstr("0.5 in pause and 0.5 in ticket"));
}

// The cycles of a PAUSE only where an event counts PAUSEs rather than cycles: a turn of the spin
// takes 500 cycles, one of the loop 50.
TEST_F(MeasuredProfiles, HaveTheCyclesOfAPause) {
  recorded_.Draw(kPause, "SSSSS", "HHHHH", 1'000'000);
  EXPECT_FALSE(Profile()->values.evidence.pause_cycles_each);
  base_.pause = profile::PauseEvent{.name = "rob_misc_events.pause_inst", .config = 0x40cc};
  EXPECT_DOUBLE_EQ(*Profile()->values.evidence.pause_cycles_each, 500 - 50);
  EXPECT_THAT(Profile()->origins.at("pause_cycles_each"), HasSubstr("measured on this host: "));
  base_.pause->name = "cpu_clk_unhalted.pause";
  EXPECT_FALSE(Profile()->values.evidence.pause_cycles_each);
}

TEST_F(MeasuredProfiles, AreNoneWhereIpcIsNotKnownToDistinguishPrograms) {
  EXPECT_THAT(std::string(Profile().status().message()), HasSubstr("does not distinguish"));
}

TEST_F(MeasuredProfiles, AreNoneWithoutASlowSpinOrAModel) {
  recorded_.Draw(kPause, "11111", "HHHHH");
  EXPECT_THAT(std::string(Profile().status().message()), HasSubstr("no spin of PAUSE was slow"));
  EXPECT_THAT(
      std::string(MeasuredProfile(recorded_.Measured(), base_, {}, "here").status().message()),
      HasSubstr("the model of this CPU is not known"));
}

TEST_F(MeasuredProfiles, AreWithinTheLimitsOfAProfile) {
  recorded_.Draw(kPause, "SSSSS", "HHHHH", 100);
  base_.pause = profile::PauseEvent{.name = "rob_misc_events.pause_inst", .config = 0x40cc};
  EXPECT_EQ(Profile().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Profile().status().message()), HasSubstr("pause_cycles_each"));
}

class Installing : public MeasuredProfiles {
 protected:
  Installing() {
    host_.Write("proc/cpuinfo",
                "processor: 0\nvendor_id: GenuineIntel\ncpu family: 6\nmodel: 85\nstepping: 4\n");
    recorded_.Draw(kPause, "SSSSS", "HHHHH", 100'000);
    calibration_ = recorded_.Measured();
  }

  fakes::ProcDir host_;
  Calibration calibration_;
};

TEST_F(Installing, IsOfABetterProfileAlone) {
  const auto install = [&] { return InstallIfBetter(calibration_, host_.root()); };
  EXPECT_THAT(std::string(install().status().message()), HasSubstr("no profile was measured: "));
  calibration_.measured = Measured{.profile = *Profile(), .right = 0};
  EXPECT_THAT(std::string(install().status().message()), HasSubstr("not installed: "));
  EXPECT_FALSE(std::filesystem::exists(profile::InstalledFolder(host_.root())));
  calibration_.measured->right = 1;
  const auto path = install();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(profile::ChooseForHost(host_.root())->profile.values,
            calibration_.measured->profile.values);
}

// The rest of the profile may say whose it is.
TEST_F(Installing, TheReportHasOnlyWhatWasMeasured) {
  calibration_.measured = Measured{.profile = *Profile(), .right = 1};
  calibration_.measured->profile.origins["weak_below"] = "tried on db1.example.com";
  calibration_.measured->profile.origins["pause_cycles_each"] = "by bob";
  const std::string json = ToJson(calibration_);
  EXPECT_THAT(json, Not(AnyOf(HasSubstr("db1"), HasSubstr("bob"))));
  EXPECT_THAT(json, HasSubstr("measured on this host: IPC 0.5 in pause"));
}

// Judged by it, the same recording says something else: HALTED up to a residency of 60 %.
TEST(Calibration, CanBeMeasuredWithOtherNumbers) {
  Recorded recorded;
  recorded.Draw(kPrograms[0], "RRRRR", "HHHHH");
  EXPECT_DOUBLE_EQ(*recorded.Measured()
                        .Of(core::Classifier::kIpcBands, core::Band::kHalted)
                        .Share(core::Band::kHalted),
                   0);
  core::Profile lazy;
  lazy.presence.halted_enter = lazy.presence.halted_leave = lazy.presence.halted_at_most = 0.6;
  EXPECT_DOUBLE_EQ(*recorded.Measured(&lazy)
                        .Of(core::Classifier::kIpcBands, core::Band::kHalted)
                        .Share(core::Band::kHalted),
                   1);
}

TEST(Calibration, TheMeasuredProfileIsBetterWhereEvidenceIsMoreOftenRight) {
  Calibration calibration;
  EXPECT_FALSE(calibration.MeasuredIsBetter());
  calibration.measured = Measured{.right = 0.5};
  EXPECT_TRUE(calibration.MeasuredIsBetter());
  calibration.measured = Measured{.right = 0};
  EXPECT_FALSE(calibration.MeasuredIsBetter());
}

}  // namespace
}  // namespace vcpulse::calibrate

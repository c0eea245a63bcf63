#include "monitor/calibrate/calibration.h"

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/fixtures/drawn_recording.h"

namespace vcpulse::calibrate {
namespace {

using check::DrawnRecording;
using check::kDrawnStart_ns;
using check::kDrawnTick_ns;
using core::Band;
using core::Classifier;
using kvm::microguest::Program;
using kvm::microguest::Truth;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array<Program, 5> kPrograms = {{
    {.name = "halt", .truth = Truth::kHalted},
    {.name = "loop", .truth = Truth::kSpinning},
    {.name = "alu", .truth = Truth::kProductive},
    {.name = "pause", .truth = Truth::kSpinning},
    {.name = "lock", .truth = Truth::kSpinning, .vcpus = 2},
}};

// What was played, and the timeline of it.
class Recorded {
 public:
  Recorded() { drawing_.Begin(1, {.vcpus = {0, 1}}); }

  // A scene of as many ticks as letters, and what each vCPU did in them; it begins with a tick's
  // read, at the middle of which a window ends.
  void Draw(const Program& program, const std::string& first, const std::string& second,
            uint64_t turns = 0, std::optional<double> duty = std::nullopt) {
    scenes_.push_back({.name = duty ? "duty" : std::string(program.name),
                       .what = "",
                       .program = &program,
                       .duty = duty});
    const int64_t begin_ns = now_ns_;
    now_ns_ += static_cast<int64_t>(first.size()) * kDrawnTick_ns;
    played_.push_back({.begin_ns = begin_ns, .end_ns = now_ns_, .turns = turns});
    first_ += first;
    second_ += second;
  }

  // All scenes began and ended so much later.
  void Shift(int64_t ns) {
    for (Played& played : played_) {
      played.begin_ns += ns;
      played.end_ns += ns;
    }
  }

  Calibration Measured() {
    drawing_.Draw(std::vector<std::string>{first_, second_});
    std::ifstream file(drawing_.Finish(), std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    auto calibration = Measure(bytes, scenes_, played_);
    EXPECT_TRUE(calibration.ok()) << calibration.status();
    return calibration.ok() ? *std::move(calibration) : Calibration{};
  }

 private:
  DrawnRecording drawing_;
  std::string first_;
  std::string second_;
  int64_t now_ns_ = kDrawnStart_ns;
  std::vector<Scene> scenes_;
  std::vector<Played> played_;
};

const Said& IpcBands(const SceneOutcome& scene) {
  return scene.said[static_cast<size_t>(Classifier::kIpcBands)];
}

TEST(Calibration, HoldsBandsAgainstTheTruth) {
  Recorded recorded;
  recorded.Draw(kPrograms[0], "HHHHH", "PPPPP");
  recorded.Draw(kPrograms[1], "HSSSSSSSSS", "PPPPPPPPPP");
  recorded.Draw(kPrograms[2], "PPPPS", "HHHHH");
  const Calibration calibration = recorded.Measured();
  ASSERT_EQ(calibration.scenes.size(), 3u);
  EXPECT_EQ(calibration.scenes[0].Truth(), Band::kHalted);
  EXPECT_EQ(IpcBands(calibration.scenes[0]).Share(Band::kHalted), 1);
  EXPECT_EQ(IpcBands(calibration.scenes[0]).TotalNs(), 5 * kDrawnTick_ns);
  const Said& spins = IpcBands(calibration.scenes[1]);
  EXPECT_DOUBLE_EQ(*spins.Share(Band::kSpinning), 0.9);
  EXPECT_EQ(spins.Most(), Band::kSpinning);
  EXPECT_EQ(spins.found_after_ns, 2 * kDrawnTick_ns);
  EXPECT_DOUBLE_EQ(*calibration.Of(Classifier::kIpcBands, Band::kProductive).Share(Band::kSpinning),
                   0.2);
  EXPECT_DOUBLE_EQ(*calibration.RightShare(Classifier::kIpcBands), (5 + 9 + 4) / 20.0);
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

// 1 GHz, and half of the time: by its turns and by its cycles.
TEST(Calibration, HoldsResidencyAgainstTurns) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SSSSSSSSSS", "HHHHHHHHHH", 1000);
  recorded.Draw(kPrograms[1], "SHSHSHSHSH", "HHHHHHHHHH", 480, 0.5);
  recorded.Draw(kPrograms[1], "HHHHHHHHHH", "HHHHHHHHHH", 10, 0.01);
  const Calibration calibration = recorded.Measured();
  EXPECT_FALSE(calibration.scenes[1].Truth());
  EXPECT_DOUBLE_EQ(*calibration.ResidencyByTurns(calibration.scenes[1]), 0.48);
  EXPECT_DOUBLE_EQ(*calibration.scenes[1].Residency(), 0.5);
  EXPECT_FALSE(calibration.ResidencyByTurns(calibration.scenes[0]));
  // Half of its windows were HALTED, which is not less than half.
  EXPECT_FALSE(calibration.SmallestSeen(Classifier::kIpcBands));
  EXPECT_THAT(ToText(calibration), HasSubstr("\n            48.0%     50.0% +2.00 points "));
  EXPECT_DOUBLE_EQ(*calibration.scenes[0].CyclesPerTurn(), 1e9 / 1000);
}

// Turns count from begin to end, and so does residency, wherever windows begin.
TEST(Calibration, AShareOfTimeIsOfTheWholeScene) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "HSSHHSHH", "HHHHHHHH", 1000, 0.5);
  recorded.Shift(kDrawnTick_ns / 2);
  EXPECT_DOUBLE_EQ(*recorded.Measured().scenes[0].Residency(), 3.0 / 8);
}

TEST(Calibration, TheSmallestShareThatIsSeen) {
  Recorded recorded;
  recorded.Draw(kPrograms[1], "SSSSSSSSSS", "HHHHHHHHHH", 1000);
  recorded.Draw(kPrograms[1], "SSSSSSSHHH", "HHHHHHHHHH", 700, 0.7);
  recorded.Draw(kPrograms[1], "SSSSSSSSHH", "HHHHHHHHHH", 800, 0.8);
  EXPECT_DOUBLE_EQ(*recorded.Measured().SmallestSeen(Classifier::kIpcBands), 0.7);
}

// Where everything runs at one IPC, bands by it are by chance, and no share of right ones is given.
TEST(Calibration, SaysWhereIpcMeansNothing) {
  Recorded same;
  for (const int program : {1, 2, 3}) same.Draw(kPrograms[program], "SSSSS", "HHHHH");
  const Calibration emulated = same.Measured();
  EXPECT_EQ(emulated.IpcTellsProgramsApart(), false);
  EXPECT_FALSE(emulated.RightShare(Classifier::kIpcBands));
  EXPECT_THAT(ToText(emulated), HasSubstr("SPINNING and PRODUCTIVE mean nothing on this host"));

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

}  // namespace
}  // namespace vcpulse::calibrate

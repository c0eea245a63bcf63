// hot(): the share of recorded hot addresses in functions of a name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/check/check.h"
#include "monitor/check/tally.h"
#include "tests/unit/monitor/check/check_texts.h"

namespace vcpulse::check {
namespace {

using ::testing::HasSubstr;

hotspots::Symbols SomeSymbols() {
  return *hotspots::Symbols::Parse("1000 T queued_spin_lock\n2000 T work\n3000 T end\n");
}

// Samples at 0x1000 (spin), 0x2000 (work), an address without a name, and one in user mode.
v1::HotAddresses WindowOf(uint64_t spin, uint64_t work, uint64_t unnamed = 0, uint64_t user = 0) {
  v1::HotAddresses window;
  window.set_source("cycles");
  const auto add = [&window](uint64_t address, uint64_t samples, v1::GuestMode mode) {
    window.add_addresses(address);
    window.add_samples(samples);
    window.add_modes(mode);
  };
  add(0x1000, spin, v1::GUEST_MODE_KERNEL);
  add(0x2000, work, v1::GUEST_MODE_KERNEL);
  add(0x9000, unnamed, v1::GUEST_MODE_KERNEL);
  add(0x1000, user, v1::GUEST_MODE_USER);
  return window;
}

std::optional<Bounds> BoundsOf(const std::string& functions,
                               const std::vector<v1::HotAddresses>& windows) {
  const hotspots::Symbols symbols = SomeSymbols();
  const auto tally = NewHotTally({.kind = Quantity::Kind::kHot, .functions = functions}, symbols);
  for (const v1::HotAddresses& window : windows) tally->Take(window);
  return tally->Finish().observed;
}

// Wilson's interval as R's prop.test(correct = FALSE) gives it, to four digits.
TEST(HotTally, ASharesBoundsAreThoseOf95Percent) {
  const auto some = BoundsOf("*spin*", {WindowOf(60, 40)});
  EXPECT_NEAR(some->low, 0.5020, 5e-5);
  EXPECT_NEAR(some->high, 0.6906, 5e-5);
  const auto none = BoundsOf("*spin*", {WindowOf(0, 4)});
  EXPECT_NEAR(none->low, 0, 1e-9);
  EXPECT_NEAR(none->high, 0.4899, 5e-5);
  const auto all = BoundsOf("*spin*", {WindowOf(500, 0)});
  EXPECT_NEAR(all->low, 0.9924, 5e-5);
  EXPECT_NEAR(all->high, 1, 1e-9);
}

TEST(HotTally, WindowsAddUpAndNamesArePatterns) {
  EXPECT_EQ(BoundsOf("*spin*", {WindowOf(30, 10), WindowOf(30, 30)}),
            BoundsOf("*spin*", {WindowOf(60, 40)}));
  EXPECT_EQ(BoundsOf("queued_spin_loc?", {WindowOf(60, 40)}),
            BoundsOf("*spin*", {WindowOf(60, 40)}));
  EXPECT_LT(BoundsOf("spin", {WindowOf(600, 400)})->high, 0.01);
}

// What has no name may be anywhere; a process's code is none of the kernel's functions.
TEST(HotTally, UnnamedSamplesWidenTheBounds) {
  const auto bounds = BoundsOf("*spin*", {WindowOf(60, 20, 20)});
  EXPECT_EQ(bounds->low, BoundsOf("*spin*", {WindowOf(60, 40)})->low);
  EXPECT_EQ(bounds->high, BoundsOf("*spin*", {WindowOf(80, 20)})->high);
  EXPECT_EQ(BoundsOf("*spin*", {WindowOf(60, 20, 0, 20)}), BoundsOf("*spin*", {WindowOf(60, 40)}));
  v1::HotAddresses further = WindowOf(60, 20);
  further.set_further_samples(20);
  EXPECT_EQ(BoundsOf("*spin*", {further}), bounds);
}

TEST(HotTally, WithoutASampleNothingIsKnown) {
  EXPECT_EQ(BoundsOf("*spin*", {}), std::nullopt);
  EXPECT_EQ(BoundsOf("*spin*", {WindowOf(0, 0)}), std::nullopt);
}

// Two vCPUs work in three phases; vCPU 0 is sampled in the second.
class HotChecks : public ::testing::Test {
 protected:
  HotChecks() {
    recording_.Begin(1, {.vcpus = {0, 1}});
    Work();
    recording_.Mark("load", recording_.now_ns());
    Work();
    v1::HotAddresses window = WindowOf(950, 50);
    window.set_begin_mono_ns(recording_.now_ns() - 5 * kDrawnTick_ns);
    recording_.EndWindow(window);
    Work();
    recording_.Mark("rest", recording_.now_ns());
    Work();
    path_ = recording_.Finish();
    options_.symbols.own["guest1"].symbols = SomeSymbols();
  }

  void Work() { recording_.Draw(std::vector<std::string>(2, std::string(12, 'P'))); }

  Finding FindingOf(const std::string& text) {
    return Check(path_, {text}, options_).judged.at(0).findings.at(0);
  }

  DrawnRecording recording_;
  std::string path_;
  CheckOptions options_;
};

TEST_F(HotChecks, ASampledVcpuIsJudged) {
  EXPECT_EQ(FindingOf("vcpu=0: hot(\"*spin*\") >= 90%").outcome, Outcome::kPass);
  const Finding failed = FindingOf("vcpu=0: hot(\"*spin*\") <= 5%");
  EXPECT_EQ(failed.outcome, Outcome::kFail);
  EXPECT_EQ(failed.reason, "hot(\"*spin*\") 93.5 % to 96.2 %, wanted <= 5 %");
  EXPECT_EQ(FindingOf("vcpu=0: hot(\"*spin*\") <= 95%").outcome, Outcome::kInconclusive);
}

TEST_F(HotChecks, WithoutSymbolsNothingIsSure) {
  options_.symbols = {};
  const Finding finding = FindingOf("vcpu=0: hot(\"*spin*\") <= 5%");
  EXPECT_EQ(finding.outcome, Outcome::kInconclusive);
  EXPECT_THAT(finding.reason, HasSubstr("that no symbol names may be in any function"));
}

TEST_F(HotChecks, AVcpuThatWasNotSampledIsSkipped) {
  const Finding finding = FindingOf("vcpu=1: hot(\"*spin*\") <= 5%");
  EXPECT_EQ(finding.outcome, Outcome::kSkip);
  EXPECT_THAT(finding.reason, HasSubstr("no hot address of it was sampled"));
}

// Of a phase, windows that lie in it.
TEST_F(HotChecks, AWindowCountsInItsPhase) {
  EXPECT_EQ(FindingOf("vcpu=0 phase=load: hot(\"*spin*\") >= 90%").outcome, Outcome::kPass);
  EXPECT_EQ(FindingOf("vcpu=0 phase=rest: hot(\"*spin*\") >= 90%").outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace vcpulse::check

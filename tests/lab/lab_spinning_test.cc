// `record --hotspots` of a vCPU that spins, by real overflows of a PMU: one window, begun where it
// had been SPINNING for 200 ms and closed a second later, all of it in the loop of guest.S.

#include <gtest/gtest.h>

#include <string>

#include "boost/json.hpp"
#include "tests/lab/lab_timeline.h"

namespace vcpulse::lab {
namespace {

constexpr int64_t kMs_ns = 1'000'000;

class Spinning : public testing::Test {
 protected:
  const RecordedTimeline recorded_ = Load(OutputPath("spinning-2", "spinning.vpt"));

  const RecordedVm& Vm() const { return recorded_.vms.at(recorded_.NumberOf("spinning")); }
};

TEST_F(Spinning, OneWindowBeginsAfter200MsAndLastsASecond) {
  ASSERT_EQ(recorded_.hot_addresses.size(), 1u);
  const v1::HotAddresses& hot = recorded_.hot_addresses.front();
  EXPECT_EQ(hot.vcpu_index(), 0u);
  EXPECT_EQ(hot.trigger(), v1::HotAddresses::TRIGGER_SPINNING);
  EXPECT_EQ(hot.source(), "cycles");
  // Its first verdict comes with the second sample, some ticks before which it is taken in.
  const int64_t after_ns = hot.begin_mono_ns() - Vm().first_sample_ns;
  EXPECT_GE(after_ns, 250 * kMs_ns);
  EXPECT_LE(after_ns, 500 * kMs_ns);
  EXPECT_GE(hot.mono_ns() - hot.begin_mono_ns(), 1000 * kMs_ns);
  EXPECT_LE(hot.mono_ns() - hot.begin_mono_ns(), 1150 * kMs_ns);
  EXPECT_EQ(hot.lost(), 0u);
}

TEST_F(Spinning, AllSamplesAreInItsLoop) {
  const boost::json::value json =
      boost::json::parse(ReadText(OutputPath("spinning-2", "hotspots.out")));
  ASSERT_EQ(json.at("vcpus").as_array().size(), 1u);
  const auto& vcpu = json.at("vcpus").at(0);
  EXPECT_EQ(vcpu.at("windows").at("spinning"), 1);
  EXPECT_GE(vcpu.at("samples").to_number<int>(), 300);
  EXPECT_LE(vcpu.at("samples").to_number<int>(), 560);
  EXPECT_EQ(vcpu.at("spots").at(0).at("name"), "spin");
  EXPECT_GE(vcpu.at("spots").at(0).at("share").to_number<double>(), 0.99);
  EXPECT_NE(ReadText(OutputPath("spinning-2", "report.out")).find("% spin of "), std::string::npos);
}

// Its code, read through QMP: a load and a branch. Nothing in it says that it waits.
TEST_F(Spinning, ItsCodeHasNoWaitHint) {
  const boost::json::value json =
      boost::json::parse(ReadText(OutputPath("spinning-2", "code.out")));
  EXPECT_EQ(json.at("vcpus").at(0).at("wait_share").to_number<double>(), 0.0);
}

// A loop of YIELDs: the code that the window kept tells it, and the names that `symbolize` wrote.
TEST_F(Spinning, ALoopOfYieldsWaitsInPlace) {
  const RecordedTimeline yielding = Load(OutputPath("spinning-2", "yielding.vpt"));
  ASSERT_EQ(yielding.hot_addresses.size(), 1u);
  EXPECT_EQ(yielding.hot_addresses.front().refused(), "");
  ASSERT_GE(yielding.hot_addresses.front().code_size(), 1);
  EXPECT_EQ(yielding.hot_addresses.front().code(0).isa(), v1::GuestCode::ISA_ARM64);
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("spinning-2", "yielding-report.out")));
  const auto& vcpu = report.at("vms").at(0).at("vcpus").at(0);
  EXPECT_GE(vcpu.at("hotspots").at("wait_share").to_number<double>(), 0.95);
  const std::string named = ReadText(OutputPath("spinning-2", "named.out"));
  EXPECT_NE(named.find("kernel  yielding\n"), std::string::npos) << named;
  EXPECT_NE(named.find("waits in place: at least"), std::string::npos) << named;
}

// The counter that it takes is one of those that the set leaves.
TEST_F(Spinning, TheSetStaysAndCountsOn) {
  EXPECT_EQ(Vm().sets.size(), 1u);
  for (const v1::LifeCycle& change : recorded_.life_cycle) {
    EXPECT_NE(change.kind(), v1::LifeCycle::KIND_SET_REDUCED) << change.detail();
  }
  const double exact = ShareOfTicks(Vm(), 0, [](const Interval& interval) {
    return interval.delta.time_running_ns == interval.delta.time_enabled_ns &&
           interval.verdict.band == core::Band::kSpinning;
  });
  EXPECT_GE(exact, 0.9);
}

// What a window costs the guest: instructions in it against those before and after, on a clock by
// which the host's own work takes its time too.
TEST_F(Spinning, AWindowTakesLittleFromTheGuest) {
  ASSERT_EQ(recorded_.hot_addresses.size(), 1u);
  const v1::HotAddresses& hot = recorded_.hot_addresses.front();
  double inside = 0;
  double inside_ns = 0;
  double outside = 0;
  double outside_ns = 0;
  const auto& intervals = Vm().intervals.at(0);
  for (const Interval& interval : intervals) {
    const int64_t end_ns =
        Vm().first_sample_ns + static_cast<int64_t>(interval.tick - Vm().first_tick) * 50 * kMs_ns;
    const bool is_inside = end_ns - 60 * kMs_ns > hot.begin_mono_ns() && end_ns < hot.mono_ns();
    const bool is_outside = end_ns < hot.begin_mono_ns() || end_ns - 60 * kMs_ns > hot.mono_ns();
    const auto instructions =
        static_cast<double>(interval.delta.counts.at(*interval.slots.instructions));
    const auto length_ns = static_cast<double>(interval.delta.interval_ns);
    if (is_inside) inside += instructions, inside_ns += length_ns;
    if (is_outside) outside += instructions, outside_ns += length_ns;
  }
  ASSERT_GT(inside_ns, 500e6);
  ASSERT_GT(outside_ns, 1000e6);
  const double lost = 1 - (inside / inside_ns) / (outside / outside_ns);
  RecordProperty("lost", std::to_string(lost));
  std::printf("a window at 499 Hz takes %.1f %% of the guest's turns\n", 100 * lost);
  EXPECT_LT(lost, 0.15);
}

}  // namespace
}  // namespace vcpulse::lab

// What the scheduler and KVM counted, in the explanation of a window.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "boost/json.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/report/explain.h"
#include "tests/unit/fixtures/live_recording.h"
#include "tests/unit/fixtures/made_statistics.h"

namespace vcpulse::report {
namespace {

using replay::LiveRecording;
using replay::LiveTick;
using ::testing::HasSubstr;

// With readings of vCPU 1 after ticks 10, 20 and 30 of the first epoch, a second apart.
class ExplainCountsTest : public ::testing::Test {
 protected:
  ExplainCountsTest() : live_(100'000'000, LiveRecording::Groups::kOne, /*keeps_profile=*/true) {
    live_.Begin({.vm = 1, .epoch = 1, .vcpus = 2});
    live_.Run(60);
  }

  Explanation ExplainAt(int64_t at_ns) {
    if (!std::exchange(ended_, true)) live_.End("duration");
    Explainer explainer({.vcpu = 1, .at_ns = at_ns});
    const auto read = timeline::ReadTimelineBytes(
        timeline::Concatenate(live_.chunks()), [&](const timeline::Entry& entry) {
          if (absl::Status status = explainer.Add(entry); !status.ok()) return status;
          const auto* tick = std::get_if<timeline::TickEntry>(&entry.record);
          if (tick == nullptr || tick->epoch != 1 || tick->sample.tick % 10 != 0 ||
              tick->sample.tick == 0 || tick->sample.tick > last_tick_) {
            return absl::OkStatus();
          }
          // 0, 20,000, 20,005 halts.
          const uint64_t turn = tick->sample.tick / 10;
          const uint64_t halts = turn < 2 ? 0 : 20'000 + 5 * (turn - 2);
          v1::Statistics record = fixtures::StatisticsOf(1, 1, tick->sample.wake_ns + 1,
                                                         {"halt_exits"}, {{7}, {halts}});
          return explainer.Add({.sequence = entry.sequence, .record = record});
        });
    EXPECT_TRUE(read.ok()) << read.status();
    return *explainer.Finish();
  }

  // Of a tick of the first epoch, after the start.
  int64_t TimeOf(uint64_t tick) const {
    const auto found =
        std::ranges::find(live_.ticks(), tick, [](const LiveTick& one) { return one.sample.tick; });
    return found->sample.wake_ns - live_.ticks().front().sample.wake_ns;
  }

  LiveRecording live_;
  bool ended_ = false;
  uint64_t last_tick_ = 1000;  // that a reading follows
};

TEST_F(ExplainCountsTest, OverTheTimeThatHasTheWindow) {
  const Explanation storm = ExplainAt(TimeOf(15));
  ASSERT_TRUE(storm.counted);
  EXPECT_THAT(storm.counted->values,
              ::testing::ElementsAre(
                  ::testing::Pair(metric::Metric::kHaltExits, ::testing::DoubleNear(20'000, 100))));
  ASSERT_EQ(storm.counted->causes.size(), 1u);
  EXPECT_EQ(storm.counted->causes[0]->name, "wake-up-storm");
  EXPECT_LT(storm.counted->from_ns, storm.at_ns);
  EXPECT_GE(storm.counted->to_ns, storm.at_ns);
  EXPECT_THAT(RenderExplanation(storm), HasSubstr("halt-exits/s\n  wake-up-storm: it is woken"));
  EXPECT_THAT(RenderExplanation(storm), HasSubstr("\ncounted: from "));
  EXPECT_EQ(boost::json::parse(RenderExplanationJson(storm)).at_pointer("/counted/causes/0"),
            "wake-up-storm");
  const Explanation calm = ExplainAt(TimeOf(25));
  ASSERT_TRUE(calm.counted);
  EXPECT_THAT(calm.counted->causes, ::testing::IsEmpty());
  EXPECT_LT(calm.counted->values[0].second, 10);
}

TEST_F(ExplainCountsTest, BeforeTheFirstReadingNothingIsKnown) {
  EXPECT_FALSE(ExplainAt(TimeOf(5)).counted);
  EXPECT_TRUE(
      boost::json::parse(RenderExplanationJson(ExplainAt(TimeOf(5)))).at("counted").is_null());
}

// The readings ended two seconds before the end of the epoch and more.
TEST_F(ExplainCountsTest, AnOldReadingTellsNothing) {
  last_tick_ = 30;
  const Explanation before = ExplainAt(TimeOf(45));
  ASSERT_TRUE(before.counted);
  EXPECT_THAT(RenderExplanation(before), HasSubstr("\ncounted before it: from "));
  EXPECT_FALSE(ExplainAt(TimeOf(55)).counted);
}

// Between one reading and nothing there is no count.
TEST_F(ExplainCountsTest, OneReadingTellsNothing) {
  last_tick_ = 10;
  EXPECT_FALSE(ExplainAt(TimeOf(15)).counted);
}

}  // namespace
}  // namespace vcpulse::report

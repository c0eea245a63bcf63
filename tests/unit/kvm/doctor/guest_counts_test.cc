// What the groups of one vCPU come to together.
#include "kvm/doctor/guest_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace vcpulse::kvm::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

constexpr GroupValues kBegun{.time_enabled_ns = 500, .time_running_ns = 200, .counts = {7, 9}};

// `enabled_ns` and `running_ns` after kBegun, with so many counts of each event.
GroupValues After(uint64_t enabled_ns, uint64_t running_ns, uint64_t cycles,
                  uint64_t instructions) {
  return {.time_enabled_ns = 500 + enabled_ns,
          .time_running_ns = 200 + running_ns,
          .counts = {7 + cycles, 9 + instructions}};
}

class GuestCountsSum : public ::testing::Test {
 protected:
  void Add(const GroupValues& now) { counts_.Add(kBegun, now, events_); }

  std::vector<Event> events_{{.name = "cycles"}, {.name = "instructions"}};
  Counts counts_;
};

TEST_F(GuestCountsSum, OfOneGroupIsWhatCameSinceItBegan) {
  Add(After(3'000, 3'000, 40, 60));

  EXPECT_THAT(counts_.of, ElementsAre(Pair("cycles", 40U), Pair("instructions", 60U)));
  EXPECT_THAT(counts_.Of("cycles"), Optional(40U));
  EXPECT_EQ(counts_.Of("pause"), std::nullopt);
  EXPECT_EQ(counts_.running_ns, 3'000U);
  EXPECT_TRUE(counts_.Whole());
}

TEST_F(GuestCountsSum, OfOneGroupThatARivalTookForAnInstantIsNotWhole) {
  Add(After(3'000'000, 2'999'999, 40, 60));

  EXPECT_FALSE(counts_.Whole());
}

TEST_F(GuestCountsSum, OfTwoCorePmusIsWholeWhereOneOfThemAlwaysRan) {
  Add(After(30'000'000, 10'000'000, 40, 60));
  Add(After(30'001'000, 19'999'000, 2, 3));

  EXPECT_THAT(counts_.of, ElementsAre(Pair("cycles", 42U), Pair("instructions", 63U)));
  EXPECT_EQ(counts_.enabled_ns, 30'001'000U);
  EXPECT_EQ(counts_.running_ns, 29'999'000U);
  EXPECT_TRUE(counts_.Whole());
}

TEST_F(GuestCountsSum, OfTwoCorePmusIsNotWholeWhereNoneRanForAWhile) {
  Add(After(30'000'000, 10'000'000, 40, 60));
  Add(After(30'000'000, 16'000'000, 2, 3));

  EXPECT_FALSE(counts_.Whole());
}

}  // namespace
}  // namespace vcpulse::kvm::doctor

#include "kvm/events/event_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::kvm {
namespace {

TEST(EventSets, EachStepKeepsTheHeadOfTheSetAbove) {
  for (const EventSet set :
       {EventSet::kFull, EventSet::kCore, EventSet::kBranches, EventSet::kMin}) {
    const auto larger = EventsOf(set);
    const auto smaller = EventsOf(*NextSmaller(set));
    ASSERT_LT(smaller.size(), larger.size());
    for (size_t i = 0; i < smaller.size(); ++i) EXPECT_EQ(smaller[i], larger[i]);
  }
  EXPECT_EQ(NextSmaller(EventSet::kCycles), std::nullopt);
  EXPECT_EQ(NextSmaller(EventSet::kDegraded), std::nullopt);
}

TEST(EventSets, NamesRoundTrip) {
  for (const EventSet set : {EventSet::kFull, EventSet::kCore, EventSet::kBranches, EventSet::kMin,
                             EventSet::kCycles, EventSet::kDegraded}) {
    EXPECT_EQ(ParseEventSet(ToString(set)), set);
  }
  EXPECT_EQ(ParseEventSet("all"), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::kvm

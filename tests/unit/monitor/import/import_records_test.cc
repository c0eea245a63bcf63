#include "monitor/import/import_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace vcpulse::importing {
namespace {

using ::testing::ElementsAre;

std::vector<size_t> Sizes(const EventGroups& groups) {
  std::vector<size_t> sizes;
  for (const EventGroups::Group& group : groups.groups) sizes.push_back(group.events.size());
  return sizes;
}

EventGroups GroupsOf(std::vector<uint32_t> turns) {
  Table table;
  Layout layout;
  layout.events.resize(turns.size());
  std::iota(layout.events.begin(), layout.events.end(), 0);
  table.turns = std::move(turns);
  return GroupEvents(table, layout);
}

TEST(EventGroups, EightFillAGroupAndTheNinthBeginsAnother) {
  EXPECT_THAT(Sizes(GroupsOf(std::vector<uint32_t>(8))), ElementsAre(8));
  const EventGroups groups = GroupsOf(std::vector<uint32_t>(9));
  EXPECT_THAT(Sizes(groups), ElementsAre(8, 1));
  EXPECT_EQ(groups.places[8].group, 1u);
  EXPECT_EQ(groups.places[8].slot, 0u);
  EXPECT_EQ(groups.groups[1].timed_by, std::nullopt);
}

TEST(EventGroups, EachTurnIsAGroupTimedByItsFirst) {
  const EventGroups groups = GroupsOf({0, 1, 1, 0, 2});
  EXPECT_THAT(Sizes(groups), ElementsAre(2, 2, 1));
  EXPECT_EQ(groups.groups[1].timed_by, 1u);
  EXPECT_EQ(groups.groups[2].timed_by, 4u);
  EXPECT_EQ(groups.places[3].slot, 1u);
}

// The main group is never that of another turn: its times are those of the row.
TEST(EventGroups, TheMainGroupMayBeEmpty) {
  EXPECT_THAT(Sizes(GroupsOf({3, 3})), ElementsAre(0, 2));
  EXPECT_THAT(Sizes(GroupsOf({})), ElementsAre(0));
}

// All that a row may have fits, whatever the turns are.
TEST(EventGroups, SixtyFourAlwaysFit) {
  for (uint32_t turns = 1; turns <= 64; ++turns) {
    std::vector<uint32_t> of(kMaxRowEvents);
    for (uint32_t i = 0; i < of.size(); ++i) of[i] = i % turns;
    const EventGroups groups = GroupsOf(of);
    EXPECT_LE(groups.groups.size(), core::kMaxGroups);
    size_t placed = 0;
    for (const size_t size : Sizes(groups)) {
      EXPECT_LE(size, core::kMaxEvents);
      placed += size;
    }
    EXPECT_EQ(placed, kMaxRowEvents);
  }
}

}  // namespace
}  // namespace vcpulse::importing

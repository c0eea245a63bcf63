#include "kvm/events/event_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>

#include "kvm/counters/group_layout.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Event Named(const std::string& name) {
  for (const Event& event : EventsOf(EventSet::kFull)) {
    if (event.name == name) return event;
  }
  return {.name = name, .type = PERF_TYPE_SOFTWARE, .host_side = true};
}

std::vector<std::string> NamesOf(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events) names.push_back(event.name);
  return names;
}

std::vector<std::string> RungNames(const std::vector<Rung>& ladder) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder) names.push_back(rung.name);
  return names;
}

Wanted Request(std::vector<std::vector<std::string>> units, bool multiplex = false) {
  Wanted wanted{.multiplex = multiplex};
  for (const auto& unit : units) {
    std::vector<Event>& events = wanted.events.groups.emplace_back();
    for (const std::string& name : unit) events.push_back(Named(name));
  }
  return wanted;
}

TEST(EventLadder, ASetStepsDownTheSets) {
  const auto ladder = LadderOf({.set = EventSet::kCore});
  EXPECT_THAT(RungNames(ladder), ElementsAre("core", "branches", "min", "cycles"));
  EXPECT_THAT(NamesOf(EventsOf(ladder[1])),
              ElementsAre("cycles", "instructions", "branches", "branch-misses"));
  EXPECT_THAT(NamesOf(EventsOf(ladder[2])), ElementsAre("cycles", "instructions"));
  EXPECT_THAT(LadderOf({.set = EventSet::kDegraded}), IsEmpty());
}

const Event kPause = {.name = "cpu_clk_unhalted.pause", .type = PERF_TYPE_RAW, .config = 0x40ec};

// What each rung of the full set gives up.
std::vector<std::string> GivenUp(const std::vector<Rung>& ladder) {
  std::vector<std::string> all;
  for (size_t i = 1; i < ladder.size(); ++i) {
    const std::vector<std::string> kept = NamesOf(EventsOf(ladder[i]));
    std::string names;
    for (const std::string& name : NamesOf(EventsOf(ladder[i - 1]))) {
      if (std::ranges::find(kept, name) == kept.end()) names += (names.empty() ? "" : " ") + name;
    }
    all.push_back(names);
  }
  return all;
}

TEST(EventLadder, TheFullSetKeepsPauseLongest) {
  const auto ladder = LadderOf({.pause = kPause});
  EXPECT_THAT(RungNames(ladder),
              ElementsAre("full", "full", "full", "full", "branches", "min", "cycles"));
  EXPECT_THAT(GivenUp(ladder),
              ElementsAre("cache-misses", "L1-dcache-load-misses", "cpu_clk_unhalted.pause",
                          "ref-cycles", "branches branch-misses", "instructions"));
  EXPECT_THAT(ladder[0].units, SizeIs(1));
  EXPECT_THAT(ladder[0].units.front(), SizeIs(8));
}

TEST(EventLadder, WithoutPauseL1dMissesOutlastRefCycles) {
  const auto ladder = LadderOf({});
  EXPECT_THAT(RungNames(ladder), ElementsAre("full", "full", "core", "branches", "min", "cycles"));
  EXPECT_THAT(GivenUp(ladder), ElementsAre("cache-misses", "ref-cycles", "L1-dcache-load-misses",
                                           "branches branch-misses", "instructions"));
}

TEST(EventLadder, PauseGoesWithTheFullSetOnly) {
  const auto core = LadderOf({.set = EventSet::kCore, .pause = kPause});
  EXPECT_THAT(EventsOf(core[0]), SizeIs(5));
  Wanted by_name = Request({{"branches"}});
  by_name.pause = kPause;
  EXPECT_THAT(NamesOf(EventsOf(LadderOf(by_name).front())), ElementsAre("cycles", "branches"));
  EXPECT_THAT(LadderOf({.set = EventSet::kDegraded, .pause = kPause}), IsEmpty());
}

TEST(EventLadder, PauseIsOneMoreUnitOfRotatingGroups) {
  const auto ladder = LadderOf({.pause = kPause, .multiplex = true});
  const auto without = LadderOf({.multiplex = true});
  ASSERT_EQ(ladder.size(), without.size());
  auto units = without.front().units;
  units.push_back({kPause});
  EXPECT_EQ(ladder.front().units, units);
}

TEST(EventLadder, EventsByNameLoseTheirLastUnitAtEachStep) {
  const auto ladder =
      LadderOf(Request({{"cycles"}, {"branches", "branch-misses"}, {"cache-misses"}}));
  ASSERT_THAT(ladder, SizeIs(3));
  EXPECT_THAT(NamesOf(EventsOf(ladder[0])),
              ElementsAre("cycles", "branches", "branch-misses", "cache-misses"));
  EXPECT_THAT(NamesOf(EventsOf(ladder[1])), ElementsAre("cycles", "branches", "branch-misses"));
  EXPECT_THAT(NamesOf(EventsOf(ladder[2])), ElementsAre("cycles"));
  EXPECT_EQ(ladder[2].name, "custom");
}

// Residency needs cycles, and an IPC comes from one group only.
TEST(EventLadder, CyclesLeadAndInstructionsJoinThem) {
  EXPECT_THAT(NamesOf(EventsOf(LadderOf(Request({{"branches"}})).front())),
              ElementsAre("cycles", "branches"));
  EXPECT_THAT(
      NamesOf(EventsOf(LadderOf(Request({{"branches"}, {"instructions", "cycles"}})).front())),
      ElementsAre("cycles", "instructions", "branches"));
  const auto ladder = LadderOf(Request({{"branches"}, {"instructions"}, {"cycles"}}, true));
  EXPECT_THAT(NamesOf(ladder.front().units.front()), ElementsAre("cycles", "instructions"));
}

TEST(EventLadder, RotatingGroupsShrinkToTheLargestUnit) {
  const auto ladder = LadderOf(Request({{"branches", "branch-misses", "cache-misses"}}, true));
  ASSERT_THAT(ladder, SizeIs(6));
  EXPECT_EQ(ladder.front().largest_group, 8u);
  EXPECT_EQ(ladder.back().largest_group, 3u);
  EXPECT_TRUE(ladder.back().multiplexed);
}

TEST(EventLadder, RotatingGroupsOfOneEventAreTheLast) {
  const auto ladder = LadderOf(Request({{"branches"}, {"cache-misses"}}, true));
  ASSERT_THAT(ladder, SizeIs(8));
  EXPECT_EQ(ladder.back().largest_group, 1u);
}

TEST(EventLadder, SoftwareAloneIsWhatWasNamedSo) {
  EXPECT_FALSE(Wanted{}.IsSoftwareOnly());
  EXPECT_FALSE(Request({{"task-clock"}, {"cycles"}}).IsSoftwareOnly());
  EXPECT_TRUE(Request({{"task-clock"}, {"page-faults"}}).IsSoftwareOnly());
}

TEST(EventLadder, DegradedKeepsTheHostSideEventsThatWereNamed) {
  const auto units =
      DegradedUnits(Request({{"cycles"}, {"page-faults", "cycles", "faults"}, {"task-clock"}}));
  ASSERT_THAT(units, SizeIs(2));
  EXPECT_THAT(NamesOf(units[0]), ElementsAre("task-clock"));
  EXPECT_THAT(NamesOf(units[1]), ElementsAre("page-faults", "faults"));
}

const std::vector<Pmu> kHybrid = {{.name = "cpu_core", .type = 4},
                                  {.name = "cpu_atom", .type = 10}};

TEST(GroupLayout, OneCorePmuIsOneGroupAsGiven) {
  const std::vector<Event> events = {Named("cycles"), Named("page-faults")};
  const std::vector<Pmu> one = {{.name = "cpu", .type = 4}};
  for (const auto& pmus : {one, std::vector<Pmu>()}) {
    ASSERT_THAT(LayoutOf(events, pmus), SizeIs(1));
    EXPECT_EQ(LayoutOf(events, pmus)[0].events, events);
  }
}

// The PMU's type goes into bits 63:32 of generic events, raw ones take it as their type, those of
// one PMU stay on it, and host-side events get a group that counts on any core.
TEST(GroupLayout, AHybridHostHasAGroupPerCorePmu) {
  const Event raw{.name = "r1b2", .type = PERF_TYPE_RAW, .config = 0x1b2};
  // Its name does not tell, nor does its type, which is that of rNNN: the PMU is kept beside them.
  const Event core_only{.name = "slots", .type = 4, .config = 0x400, .pmu = "cpu_core"};
  const Event cache{.name = "cpu_atom/LLC-loads/",
                    .type = PERF_TYPE_HW_CACHE,
                    .config = (uint64_t{10} << 32) | 2,
                    .pmu = "cpu_atom"};
  const std::vector<Event> events = {Named("cycles"), core_only, raw, cache, Named("page-faults")};
  const auto layout = LayoutOf(events, kHybrid);
  ASSERT_THAT(layout, SizeIs(3));
  EXPECT_EQ(layout[0].pmu, "cpu_core");
  EXPECT_THAT(NamesOf(layout[0].events), ElementsAre("cycles", "r1b2", "slots"));
  EXPECT_EQ(layout[0].events[0].type, uint32_t{PERF_TYPE_HARDWARE});
  EXPECT_EQ(layout[0].events[0].config, uint64_t{4} << 32);
  EXPECT_EQ(layout[1].pmu, "cpu_atom");
  EXPECT_THAT(NamesOf(layout[1].events), ElementsAre("cycles", "r1b2", "cpu_atom/LLC-loads/"));
  EXPECT_EQ(layout[1].events[0].config, uint64_t{10} << 32);
  EXPECT_EQ(layout[1].events[1].type, 10u);
  EXPECT_EQ(layout[1].events[1].config, 0x1b2u);
  EXPECT_THAT(NamesOf(layout[2].events), ElementsAre("page-faults"));
}

}  // namespace
}  // namespace vcpulse::kvm

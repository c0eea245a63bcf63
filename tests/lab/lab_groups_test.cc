// Counter groups on a real PMU of seven counters that others use too: a group that never runs, two
// that compete, and more events than counters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kvm/events/event_catalog.h"
#include "kvm/events/event_resolver.h"
#include "tests/lab/lab_timeline.h"
#include "tests/unit/kvm/events/perf_list_names.h"

namespace vcpulse::lab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const RecordedVm& OnlyVm(const RecordedTimeline& recorded) {
  EXPECT_THAT(recorded.vms, SizeIs(1));
  return recorded.vms.begin()->second;
}

// Three ticks of a group that was enabled and never on the PMU, then one set that runs: cycles have
// a counter of their own.
TEST(Groups, AGroupThatNeverRunsStepsDownWithinThreeTicks) {
  const RecordedTimeline recorded = Load(OutputPath("groups-1", "never.vpt"));
  const RecordedVm& vm = OnlyVm(recorded);
  ASSERT_THAT(vm.sets, SizeIs(2));
  EXPECT_EQ(vm.sets[0].event_set(), "full");
  EXPECT_EQ(vm.sets[1].event_set(), "cycles");
  ASSERT_EQ(vm.sets[1].absent_events_size(), 6);
  // Three samples that show it, and one that was taken while the next epoch was opened.
  size_t before = 0;
  for (const Interval& interval : vm.intervals.at(0)) before += interval.slots.instructions ? 1 : 0;
  EXPECT_LE(before, 4u);

  bool said = false;
  for (const v1::LifeCycle& change : recorded.life_cycle) {
    if (change.kind() != v1::LifeCycle::KIND_SET_REDUCED) continue;
    said = true;
    EXPECT_THAT(change.detail(), HasSubstr("never ran"));
    EXPECT_THAT(change.detail(), HasSubstr("stepped down to cycles, without instructions"));
  }
  EXPECT_TRUE(said);
  EXPECT_THAT(ReadText(OutputPath("groups-1", "never.err")), HasSubstr("stepped down to cycles"));

  // What is counted now really runs, and says nothing of what it does not count.
  const double share = ShareOfTicks(vm, 0, [](const Interval& interval) {
    return interval.delta.time_running_ns > 0 && !interval.slots.instructions &&
           interval.verdict.rule == core::Rule::kNoInstructions;
  });
  EXPECT_GE(share, 0.7);  // of all ticks, those before the step down included
}

// The rival comes after 3 s and leaves after 9 s: cycles alone in between, all events again after.
TEST(Groups, ARivalThatComesAndGoesCostsTheTimeOfItsStay) {
  const RecordedTimeline recorded = Load(OutputPath("groups-1", "rival.vpt"));
  const RecordedVm& vm = OnlyVm(recorded);
  ASSERT_THAT(vm.sets, SizeIs(3));
  EXPECT_EQ(vm.sets[0].event_set(), "full");
  EXPECT_EQ(vm.sets[1].event_set(), "cycles");
  EXPECT_EQ(vm.sets[2].event_set(), "full");
  std::vector<v1::LifeCycle::Kind> changes;
  for (const v1::LifeCycle& change : recorded.life_cycle) {
    const bool of_set = change.kind() == v1::LifeCycle::KIND_SET_REDUCED ||
                        change.kind() == v1::LifeCycle::KIND_SET_RESTORED;
    if (of_set) changes.push_back(change.kind());
  }
  EXPECT_THAT(changes,
              ElementsAre(v1::LifeCycle::KIND_SET_REDUCED, v1::LifeCycle::KIND_SET_RESTORED));
  const std::string said = ReadText(OutputPath("groups-1", "rival.err"));
  EXPECT_THAT(said, HasSubstr("event set full no longer runs"));
  EXPECT_THAT(said, HasSubstr("event set full runs again"));
}

// What waits for a CPU is then not measured, which is not 0; bands need no more than the state.
TEST(Groups, AKernelWithoutSchedstatsHasBandsAndNoRunDelay) {
  const RecordedTimeline recorded = Load(OutputPath("groups-1", "noschedstat.vpt"));
  const RecordedVm& vm = OnlyVm(recorded);
  const auto is_without_times = [](const Interval& interval) {
    return !interval.delta.run_ns && !interval.delta.run_delay_ns;
  };
  EXPECT_EQ(ShareOfTicks(vm, 0, is_without_times), 1);
  EXPECT_EQ(ShareOfTicks(vm, 1, is_without_times), 1);
  EXPECT_GE(ShareOfTicks(vm, 0,
                         [](const Interval& interval) {
                           return interval.verdict.rule == core::Rule::kIpcLow;  // 0.5
                         }),
            0.9);
  EXPECT_GE(ShareOfTicks(vm, 1,
                         [](const Interval& interval) {
                           return interval.verdict.band == core::Band::kHalted;
                         }),
            0.9);
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("groups-1", "noschedstat_report.out")));
  for (const boost::json::value& vcpu : report.at("vms").at(0).at("vcpus").as_array()) {
    EXPECT_TRUE(vcpu.at("run_delay_share").is_null()) << vcpu;
  }
}

TEST(Groups, AnEventThatThePmuDoesNotListIsAbsentNotZero) {
  const RecordedTimeline recorded = Load(OutputPath("groups-1", "unlisted.vpt"));
  const RecordedVm& vm = OnlyVm(recorded);
  ASSERT_THAT(vm.sets, SizeIs(1));
  EXPECT_EQ(vm.sets[0].events_size(), 2);
  ASSERT_EQ(vm.sets[0].absent_events_size(), 1);
  EXPECT_EQ(vm.sets[0].absent_events(0).event(), "r1e");
}

// Both groups get the PMU in turn: less than all of the time, and still the exact IPC of the clock.
TEST(Groups, CompetingGroupsShareTheTimeAndKeepTheirIpc) {
  const RecordedTimeline recorded = Load(OutputPath("groups-1", "competing.vpt"));
  const RecordedVm& vm = OnlyVm(recorded);
  ASSERT_THAT(vm.sets, SizeIs(1));
  EXPECT_EQ(vm.sets[0].events_size(), 4);
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  for (const Interval& interval : vm.intervals.at(0)) {
    enabled_ns += interval.delta.time_enabled_ns;
    running_ns += interval.delta.time_running_ns;
  }
  const double q = static_cast<double>(running_ns) / static_cast<double>(enabled_ns);
  RecordProperty("q", std::to_string(q));
  EXPECT_GT(q, 0.1);
  EXPECT_LT(q, 0.9);
  const double exact = ShareOfTicks(vm, 0, [](const Interval& interval) {
    const auto ipc = core::Ipc(interval.delta, interval.slots);
    return interval.delta.time_running_ns > 0 && ipc && std::abs(*ipc - 0.5) <= 0.005;
  });
  EXPECT_GE(exact, 0.95);
}

// perf stat's estimates, by event name.
std::map<std::string, double> OracleCounts() {
  std::map<std::string, double> counts;
  std::istringstream lines(ReadText(OutputPath("groups-1", "oracle.json")));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;
    const boost::json::object object = boost::json::parse(line).as_object();
    std::string name = object.at("event").as_string().c_str();
    if (name.ends_with(":G")) name.resize(name.size() - 2);
    counts[name] = std::stod(object.at("counter-value").as_string().c_str());
  }
  return counts;
}

// Fourteen events on seven counters, for 6 s like perf. perf names them by `name=`,
// we by what was typed.
TEST(Groups, MultiplexedEstimatesAreThoseOfPerf) {
  const std::map<std::string, double> oracle = OracleCounts();
  ASSERT_THAT(oracle, SizeIs(14));
  const boost::json::value report =
      boost::json::parse(ReadText(OutputPath("groups-1", "multiplex_report.out")));
  const auto& vcpu = report.at_pointer("/vms/0/vcpus/0").as_object();
  const auto& scaled = vcpu.at("counts_scaled").as_object();
  ASSERT_THAT(scaled, SizeIs(14));
  size_t estimates = 0;
  for (const auto& entry : scaled) {
    const std::string name(entry.key());
    ASSERT_TRUE(oracle.contains(name)) << name;
    EXPECT_NEAR(entry.value().to_number<double>() / oracle.at(name), 1, 0.05) << name;
  }
  for (const auto& share : vcpu.at("counted_share").as_object()) {
    if (share.value().to_number<double>() < 1) ++estimates;
  }
  EXPECT_EQ(estimates, vcpu.at("estimated_events").as_array().size());
  EXPECT_GE(estimates, 12u);
  EXPECT_THAT(ReadText(OutputPath("groups-1", "multiplex_text.out")),
              HasSubstr("(estimate, counted"));
}

// perf inside lists what this PMU has; each of those names means something here too.
TEST(Groups, EveryNameThatPerfListsIsAccepted) {
  const std::vector<std::string> names =
      NamesInPerfList(ReadText(OutputPath("groups-1", "names.out")));
  EXPECT_THAT(names,
              AllOf(Contains("cpu-cycles"), Contains("task-clock"), Contains("instructions")));
  const kvm::EventCatalog nothing_but_generic(OutputPath("groups-1", ""));
  for (const std::string& name : names) {
    const auto request = kvm::ResolveEvents(name, nothing_but_generic);
    EXPECT_TRUE(request.ok()) << request.status();
  }
}

// What `list events` said of the emulated host, by name.
TEST(Groups, ListEventsTellsWhatOpensThere) {
  std::map<std::string, bool> opens;
  const auto events = boost::json::parse(ReadText(OutputPath("groups-1", "list.out"))).as_array();
  for (const boost::json::value& event : events) {
    opens[event.at("name").as_string().c_str()] = event.at("opens").as_bool();
  }
  EXPECT_TRUE(opens.at("cycles"));
  EXPECT_TRUE(opens.at("instructions"));
  EXPECT_FALSE(opens.at("cache-misses"));
  EXPECT_TRUE(opens.at("context-switches"));
}

}  // namespace
}  // namespace vcpulse::lab

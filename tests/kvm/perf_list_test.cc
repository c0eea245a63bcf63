// perf's own list of names against vcpulse, on whatever this machine is, and `vcpulse list events`.
// Needs no guest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <set>
#include <string>

#include "kvm/events/event_catalog.h"
#include "kvm/events/event_resolver.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"
#include "tests/unit/kvm/events/perf_list_names.h"

namespace vcpulse::kvm_tests {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

json::array Events(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"list", "events", "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Finished finished = RunProgram(Vcpulse(all));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return json::parse(finished.out).as_array();
}

// A machine without a PMU lists only software events: there this test is thin, and
// GenericEvents.HoldEveryNameThatPerfPrints has the rest.
TEST(PerfList, EveryNameIsTaken) {
  const Finished perf = RunProgram({"perf", "list", "--no-desc", "hw", "sw", "cache"});
  if (perf.exit_code != 0) GTEST_SKIP() << "perf is not installed: " << perf.err;
  const std::vector<std::string> names = NamesInPerfList(perf.out);
  ASSERT_THAT(names, Contains("task-clock")) << perf.out;
  const kvm::EventCatalog catalog("/");
  for (const std::string& name : names) {
    const auto request = kvm::ResolveEvents(name, catalog);
    EXPECT_TRUE(request.ok()) << request.status();
  }
  std::printf(
      "%zu names%s\n", names.size(),
      catalog.core_pmus().empty() ? "; this machine has no PMU, so software events only" : "");
}

TEST(ListEvents, SoftwareEventsOpenAndAreNamedAsHostSide) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to open events with the kernel's share";
  const json::array events = Events({"task-clock"});
  ASSERT_EQ(events.size(), 1u);
  const json::object& event = events[0].as_object();
  EXPECT_EQ(event.at("name"), "task-clock");
  EXPECT_EQ(event.at("kind"), "software");
  EXPECT_EQ(event.at("counts"), "host");
  EXPECT_EQ(event.at("opens"), true);
  EXPECT_EQ(event.at("errno"), 0);
}

// Each kind is there, opened or not, with an answer.
TEST(ListEvents, EveryEventHasAnAnswer) {
  std::set<std::string> kinds;
  for (const json::value& value : Events({})) {
    const json::object& event = value.as_object();
    kinds.insert(std::string(event.at("kind").as_string()));
    EXPECT_FALSE(event.at("answer").as_string().empty()) << value;
    EXPECT_EQ(event.at("opens") == json::value(true), event.at("answer") == json::value("opens"));
  }
  EXPECT_THAT(kinds, AllOf(Contains("hardware"), Contains("software"), Contains("cache")));
}

TEST(ListEvents, ATableForPeople) {
  const Finished finished = RunProgram(Vcpulse({"list", "events"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("cycles (cpu-cycles)"), HasSubstr("host-side"),
                                  HasSubstr("L1-dcache-load-misses"), HasSubstr("tracepoints")));
}

// Without the right to count, nothing is known about the events themselves.
TEST(ListEvents, WithoutPermissionTheRemedyIsSaidOnce) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  std::vector<std::string> arguments = {"setpriv", "--reuid=65534", "--regid=65534",
                                        "--clear-groups"};
  for (const std::string& argument : Vcpulse({"list", "events", "--json"})) {
    arguments.push_back(argument);
  }
  const Finished finished = RunProgram(arguments);
  if (finished.exit_code == 126 || finished.exit_code == 127) {
    GTEST_SKIP() << "another user may not run the build here: " << finished.err;
  }
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const json::array events = json::parse(finished.out).as_array();
  const auto refused = std::ranges::count_if(events, [](const json::value& event) {
    return event.as_object().at("answer") == "no permission";
  });
  if (refused == 0) GTEST_SKIP() << "every user may count here (kernel.perf_event_paranoid)";
  EXPECT_EQ(refused, static_cast<long>(events.size()));
  for (const json::value& event : events) EXPECT_TRUE(event.as_object().at("opens").is_null());
  const size_t remedy = finished.err.find("setcap cap_perfmon=ep");
  ASSERT_NE(remedy, std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("setcap", remedy + 1), std::string::npos) << "said twice";
}

TEST(ListEvents, AreThoseBelowTheRoot) {
  fakes::ProcDir host;
  Finished finished = RunProgram(Vcpulse({"list", "--root", host.root(), "events", "--json"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("shows no PMU"));
  host.Write("sys/bus/event_source/devices/cpu/type", "4\n");
  host.Write("sys/bus/event_source/devices/cpu/format/event", "config:0-7\n");
  host.Write("sys/bus/event_source/devices/cpu/events/of-this-root", "event=0x3c\n");
  finished = RunProgram(Vcpulse({"list", "--root", host.root(), "events", "of-this-root"}));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("of-this-root"));

  const std::string nothing = host.root() + "/sys";
  finished = RunProgram(Vcpulse({"list", "--root", nothing, "events"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr(nothing + "/proc"));
}

TEST(ListEvents, TakesNoVm) {
  const Finished finished = RunProgram(Vcpulse({"list", "--pid", "1", "events"}));
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("takes no VM"));
}

}  // namespace
}  // namespace vcpulse::kvm_tests

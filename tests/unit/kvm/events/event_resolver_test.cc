#include "kvm/events/event_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <string>

#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

EventCatalog ResolverHost(const std::string& name) { return EventCatalog(fakes::HostTree(name)); }

EventRequest Resolved(const std::string& host, const std::string& text) {
  auto request = ResolveEvents(text, ResolverHost(host));
  EXPECT_TRUE(request.ok()) << text << ": " << request.status();
  return request.ok() ? *request : EventRequest{};
}

Event One(const std::string& host, const std::string& text) {
  const EventRequest request = Resolved(host, text);
  if (request.groups.size() != 1 || request.groups[0].size() != 1 || !request.absent.empty()) {
    ADD_FAILURE() << text << " is not one event";
    return {};
  }
  return request.groups[0][0];
}

std::string ErrorOf(const std::string& host, const std::string& text) {
  const auto request = ResolveEvents(text, ResolverHost(host));
  EXPECT_FALSE(request.ok()) << text;
  EXPECT_THAT(std::string(request.status().message()), Not(HasSubstr("\n")));
  return std::string(request.status().message());
}

TEST(ResolveEvents, GroupsStayTogether) {
  const EventRequest request =
      Resolved("intel", "{cpu-cycles,instructions}:G,L1-dcache-loads:G,r3c");
  ASSERT_THAT(request.groups, ElementsAre(SizeIs(2), SizeIs(1), SizeIs(1)));
  EXPECT_EQ(request.groups[0][0], (Event{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}));
  EXPECT_EQ(request.groups[1][0].name, "L1-dcache-loads");
  EXPECT_EQ(request.groups[2][0], (Event{"r3c", PERF_TYPE_RAW, 0x3c}));
  EXPECT_THAT(request.absent, IsEmpty());
}

TEST(ResolveEvents, TermsGoWhereSysfsSays) {
  struct Row {
    const char* host;
    const char* text;
    uint32_t type;
    uint64_t config, config1, config2;
  };
  for (const Row& row : {
           Row{"intel", "cpu/event=0x3c,umask=1/", 4, 0x13c, 0, 0},
           Row{"intel", "cpu/event=60,cmask=2,inv,edge/", 4, 0x0284003c, 0, 0},
           Row{"intel", "cpu/event=0xb7,umask=1,offcore_rsp=0x80003c0001/", 4, 0x1b7, 0x80003c0001,
               0},
           Row{"intel", "cpu/offcore_rsp=0xffffffffffffffff/", 4, 0, ~uint64_t{0}, 0},
           Row{"intel", "cpu/config=0x13c,config1=7,config2=8/", 4, 0x13c, 7, 8},
           Row{"intel", "cpu/r13c/", 4, 0x13c, 0, 0},
           Row{"intel", "cpu/event=0/", 4, 0, 0, 0},
           Row{"intel", "cpu/cpu-cycles/", 4, 0x3c, 0, 0},
           Row{"intel", "cpu/cycles/", 4, 0x3c, 0, 0},  // perf's other name of cpu-cycles
           Row{"intel", "cpu/mem-loads/", 4, 0x1cd, 3, 0},
           // Not 3 | 0x1c: what is written last and by the person holds.
           Row{"intel", "cpu/mem-loads,ldlat=0x1c/", 4, 0x1cd, 0x1c, 0},
           Row{"intel", "cpu/ldlat=0x1c,mem-loads/", 4, 0x1cd, 0x1c, 0},
           Row{"intel", "msr/tsc/", 9, 0, 0, 0},
           // Bits 8 to 11 of AMD's event number are bits 32 to 35.
           Row{"amd", "cpu/event=0x1c2,umask=0x40/", 4, 0x1000040c2, 0, 0},
           Row{"amd", "cpu/event=0xfff/", 4, 0xf000000ff, 0, 0},
           Row{"hybrid", "cpu_atom/instructions/", 10, 0xc0, 0, 0},
           Row{"hybrid", "cpu_core/slots/", 4, 0x400, 0, 0},
           Row{"hybrid", "slots", 4, 0x400, 0, 0},
           Row{"arm64", "armv8_pmuv3_0/inst_retired/", 8, 8, 0, 0},
           Row{"arm64", "armv8_pmuv3_0/event=0x4005,long/", 8, 0x4005, 1, 0},
           Row{"arm64", "l2d_cache_refill", 8, 0x17, 0, 0},
       }) {
    const Event event = One(row.host, row.text);
    EXPECT_EQ(event.name, row.text);
    EXPECT_EQ(event.type, row.type) << row.text;
    EXPECT_EQ(event.config, row.config) << row.text;
    EXPECT_EQ(event.config1, row.config1) << row.text;
    EXPECT_EQ(event.config2, row.config2) << row.text;
    EXPECT_FALSE(event.host_side) << row.text;
  }
}

// Newer perfs print cache events so. The type of the PMU goes into the upper half of config where
// there are two (perf_event_open(2), PERF_TYPE_HW_CACHE on hybrid hosts).
TEST(ResolveEvents, GenericEventsOfOneCorePmu) {
  EXPECT_EQ(One("intel", "cpu/L1-dcache-loads/"),
            (Event{"cpu/L1-dcache-loads/", PERF_TYPE_HW_CACHE, 0, 0, 0, "cpu"}));
  EXPECT_EQ(
      One("hybrid", "cpu_atom/LLC-load-misses/"),
      (Event{"cpu_atom/LLC-load-misses/", PERF_TYPE_HW_CACHE, 0xa00010002, 0, 0, "cpu_atom"}));
  EXPECT_EQ(One("hybrid", "cycles"), (Event{"cycles", PERF_TYPE_HARDWARE, 0}));
  EXPECT_THAT(ErrorOf("intel", "cpu/task-clock/"), HasSubstr("no term 'task-clock'"));
  EXPECT_THAT(ErrorOf("intel", "msr/cycles/"), HasSubstr("no term 'cycles'"));
}

TEST(ResolveEvents, ANameCanBeGiven) {
  EXPECT_EQ(One("intel", "cpu/event=0x3c,name=halves/").name, "halves");
  // The bands would take it for the cycles of the guest.
  EXPECT_THAT(ErrorOf("intel", "cpu/event=0x01,name=cycles/"), HasSubstr("name=cycles"));
}

TEST(ResolveEvents, SoftwareEventsAreHostSide) {
  EXPECT_TRUE(One("intel", "task-clock").host_side);
  EXPECT_TRUE(One("intel", "software/config=1/").host_side);
  EXPECT_FALSE(One("intel", "cycles").host_side);
}

TEST(ResolveEvents, ErrorsSayWhatToWrite) {
  struct Row {
    const char* host;
    const char* text;
    std::vector<const char*> words;
  };
  for (const Row& row : {
           Row{"intel",
               "cycels",
               {"event cycels", "did you mean 'cycles'?", "vcpulse list events"}},
           Row{"intel", "L1-dcache-lodes", {"did you mean 'L1-dcache-loads'?"}},
           Row{"intel", "zzzzzzzz", {"no such event (`vcpulse list events`"}},
           Row{"arm64", "inst_retire", {"did you mean 'inst_retired'?"}},
           Row{"intel", "cpu/event=0x100/", {"event=0x100", "8 bits", "at most 0xff"}},
           Row{"amd", "cpu/event=0x1000/", {"12 bits", "at most 0xfff"}},
           Row{"intel", "cpu/inv=2/", {"1 bits", "at most 0x1"}},
           Row{"intel", "cpu/event=x/", {"event=x is not a number"}},
           Row{"intel", "cpu/event=0x10000000000000000/", {"is not a number of at most 64 bits"}},
           Row{"intel",
               "cpu/evnt=1/",
               {"no term 'evnt'", "any, cmask, edge, event", "did you mean 'event'?"}},
           Row{"intel",
               "cpu/instructionz/",
               {"no term 'instructionz'", "did you mean 'instructions'?"}},
           Row{"intel", "cpu/period=1000/", {"no term 'period'"}},
           Row{"intel", "cpu/event=1,event=2/", {"event is given twice"}},
           Row{"intel", "cpu/cpu-cycles,instructions/", {"two named events"}},
           Row{"intel", "cpu/config/", {"config wants a number"}},
           Row{"intel", "cpu/config=x/", {"config wants a number"}},
           Row{"intel", "cpu//", {"no term says which event"}},
           Row{"intel", "cpu/name=x/", {"no term says which event"}},
           Row{"intel",
               "cpus/event=1/",
               {"no PMU cpus", "breakpoint, cpu, msr", "did you mean 'cpu'?"}},
           Row{"intel", "CPU/event=1/", {"no PMU CPU"}},
           Row{"intel", "cycles/name=x/", {"cycles is an event and no PMU"}},
           Row{"intel", "uncore_imc_0/clockticks/", {"no thread", "cpumask"}},
           Row{"hybrid", "cpu/event=1/", {"no PMU cpu", "cpu_atom"}},
           Row{"hybrid", "mem-stores,bus-cycles,cache-misses,cycles:u", {"event cycles", ":u"}},
           Row{"arm64-big-little",
               "inst_retired",
               {"armv8_cortex_a53/inst_retired/", "armv8_cortex_a72/inst_retired/"}},
           Row{"intel", "cycles,cpu-cycles", {"event cpu-cycles", "named twice"}},
           Row{"intel", "{cycles},{cycles,instructions}", {"named twice"}},
           Row{"intel", "cpu/event=1,name=x/,cpu/event=2,name=x/", {"named twice"}},
           Row{"intel", "{cycles,instructions}:D", {"event cycles: :D", "vPMU"}},
           Row{"intel", "cycles:z", {":z is not a modifier"}},
       }) {
    const std::string error = ErrorOf(row.host, row.text);
    for (const char* words : row.words) EXPECT_THAT(error, HasSubstr(words)) << row.text;
  }
}

// An unimplemented raw event opens, runs and counts 0; sysfs says which those are.
TEST(ResolveEvents, OnArmAnUnlistedRawEventIsAbsent) {
  for (const char* text : {"r1e", "r1c", "armv8_pmuv3_0/event=0x1e/", "armv8_pmuv3_0/config=0x1e/",
                           "r1001e", "armv8_pmuv3_0/event=0x3f,long/"}) {
    const EventRequest request = Resolved("arm64", text);
    EXPECT_THAT(request.groups, IsEmpty()) << text;
    ASSERT_THAT(request.absent, SizeIs(1)) << text;
    EXPECT_EQ(request.absent[0].name, text);
    EXPECT_EQ(request.absent[0].error, 0) << "it was not tried";
    EXPECT_THAT(request.absent[0].reason, HasSubstr("armv8_pmuv3_0")) << text;
  }
}

TEST(ResolveEvents, WhatIsListedOrHasNoListIsKept) {
  for (const char* text : {"r8", "r0011", "armv8_pmuv3_0/event=0x11/", "r40", "rffff",
                           "armv8_pmuv3_0/event=0x4004/", "cycles", "armv8_pmuv3_0/cpu_cycles/"}) {
    EXPECT_THAT(Resolved("arm64", text).groups, SizeIs(1)) << text;
  }
  EXPECT_THAT(Resolved("intel", "r1e").groups, SizeIs(1));
  EXPECT_THAT(Resolved("amd", "cpu/event=0x1e/").groups, SizeIs(1));
  EXPECT_THAT(Resolved("no-pmu", "r1e").groups, SizeIs(1));
}

// The two clusters implement different events: a raw number is not absent while one has it.
TEST(ResolveEvents, OnBigLittleEachPmuHasItsOwnList) {
  EXPECT_THAT(Resolved("arm64-big-little", "r21").groups, SizeIs(1));
  EXPECT_THAT(Resolved("arm64-big-little", "armv8_cortex_a72/event=0x21/").groups, SizeIs(1));
  EXPECT_THAT(Resolved("arm64-big-little", "armv8_cortex_a53/event=0x21/").absent, SizeIs(1));
  EXPECT_THAT(Resolved("arm64-big-little", "r1e").absent[0].reason,
              AllOf(HasSubstr("a53"), HasSubstr("a72")));
}

// A sysfs that hides its events proves nothing.
TEST(ResolveEvents, AnArmPmuWithoutEventsHasNoList) {
  fakes::ProcDir root;
  const std::string pmu = "sys/bus/event_source/devices/armv8_pmuv3_0/";
  root.Write(pmu + "type", "8\n");
  root.Write(pmu + "cpus", "0-3\n");
  const auto request = ResolveEvents("r1e", EventCatalog(root.root()));
  ASSERT_TRUE(request.ok());
  EXPECT_THAT(request->groups, SizeIs(1));
}

TEST(ResolveEvents, AnAbsentMemberLeavesItsGroupTogether) {
  const EventRequest request = Resolved("arm64", "{cycles,r1e,instructions},cs");
  ASSERT_THAT(request.groups, ElementsAre(SizeIs(2), SizeIs(1)));
  EXPECT_EQ(request.groups[0][1].name, "instructions");
  EXPECT_THAT(request.absent, SizeIs(1));
}

class Tracepoints : public ::testing::Test {
 protected:
  // `mounted` is where tracefs shows itself.
  EventCatalog Catalog(const std::string& mounted = "sys/kernel/tracing") {
    root_.Write(mounted + "/events/kvm/kvm_exit/id", "1812\n");
    root_.Write(mounted + "/events/kvm/kvm_entry/id", "1811\n");
    root_.Write(mounted + "/events/sched/sched_switch/id", "316\n");
    root_.Write(mounted + "/events/enable", "0\n");
    root_.Write(mounted + "/secret/id", "7\n");  // beside the events
    root_.Write(mounted + "/events/id", "7\n");
    return EventCatalog(root_.root());
  }
  fakes::ProcDir root_;
};

TEST_F(Tracepoints, HaveTheirNumberAndAreHostSide) {
  const auto request = ResolveEvents("kvm:kvm_exit:G", Catalog());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->groups[0][0],
            (Event{"kvm:kvm_exit", PERF_TYPE_TRACEPOINT, 1812, 0, 0, "", /*host_side=*/true}));
}

TEST_F(Tracepoints, AreFoundBelowDebugfsToo) {
  EXPECT_TRUE(ResolveEvents("sched:sched_switch", Catalog("sys/kernel/debug/tracing")).ok());
}

TEST_F(Tracepoints, ListedAsSystemAndName) {
  EXPECT_THAT(Catalog().Tracepoints(),
              ElementsAre("kvm:kvm_entry", "kvm:kvm_exit", "sched:sched_switch"));
}

TEST_F(Tracepoints, ErrorsSayWhatToWrite) {
  const EventCatalog catalog = Catalog();
  const auto error = [&](const char* text) {
    return std::string(ResolveEvents(text, catalog).status().message());
  };
  EXPECT_THAT(error("kvm:kvm_exits"),
              AllOf(HasSubstr("no such tracepoint"), HasSubstr("did you mean 'kvm:kvm_exit'?")));
  EXPECT_THAT(error("kvm:kvm_*"), HasSubstr("wildcards are not taken"));
  EXPECT_THAT(error("kvm:kvm_exit:u"), HasSubstr(":u"));
  EXPECT_THAT(error("..:secret"), HasSubstr("no such tracepoint")) << "left the folder";
  EXPECT_THAT(error("kvm:.."), HasSubstr("no such tracepoint"));
}

TEST_F(Tracepoints, UnreadableOnesAreNotMissingOnes) {
  const auto request = ResolveEvents("kvm:kvm_exit", ResolverHost("intel"));
  EXPECT_EQ(request.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(request.status().message()), HasSubstr("mount -t tracefs"));
}

}  // namespace
}  // namespace vcpulse::kvm

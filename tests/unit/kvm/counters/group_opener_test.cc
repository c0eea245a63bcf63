#include "kvm/counters/group_opener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tests/fakes/few_descriptors.h"
#include "tests/unit/kvm/counters/group_opener_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using GroupOpener = GroupOpenerFixture;

TEST_F(GroupOpener, OpensTheFullSetOnEveryVcpu) {
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "full");
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "instructions", "branches", "branch-misses",
                                          "L1-dcache-load-misses", "ref-cycles", "cache-misses"));
  EXPECT_THAT(opened->groups, SizeIs(3));
  EXPECT_THAT(opened->absent, IsEmpty());
}

// As in the lab without icount: instructions, branch-misses and cache-misses are not there.
TEST_F(GroupOpener, AnEventThatThePmuLacksIsAbsentWithItsErrno) {
  Refuse(PERF_COUNT_HW_INSTRUCTIONS, ENOENT);
  Refuse(PERF_COUNT_HW_CACHE_MISSES, EOPNOTSUPP);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "full");
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "branches", "branch-misses",
                                          "L1-dcache-load-misses", "ref-cycles"));
  ASSERT_THAT(Absent(*opened), ElementsAre("instructions", "cache-misses"));
  EXPECT_EQ(opened->absent[0].error, ENOENT);
  EXPECT_EQ(opened->absent[1].error, EOPNOTSUPP);
  // The same events on every vCPU: slots mean the same everywhere.
  for (const VcpuGroups& groups : opened->groups) {
    ASSERT_THAT(groups, SizeIs(1));
    EXPECT_EQ(std::vector<Event>(groups[0].events().begin(), groups[0].events().end()),
              opened->layout.front().events);
  }
}

TEST_F(GroupOpener, AGroupThatDoesNotFitStepsDown) {
  perf_.largest_group = 5;
  auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "core");
  EXPECT_THAT(Absent(*opened), ElementsAre("cache-misses", "ref-cycles"));

  perf_.largest_group = 4;
  opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "branches");
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "instructions", "branches", "branch-misses"));

  perf_.largest_group = 3;
  opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "min");
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "instructions"));
  EXPECT_THAT(Absent(*opened), ElementsAre("cache-misses", "ref-cycles", "L1-dcache-load-misses",
                                           "branches", "branch-misses"));

  perf_.largest_group = 1;
  opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "cycles");
}

const Event kOpenerPause = {
    .name = "misc_retired.pause_inst", .type = PERF_TYPE_RAW, .config = 0x40cc};

TEST_F(GroupOpener, PauseIsCountedBesideTheFullSet) {
  const auto opened =
      Open({.wanted = {.pause = kOpenerPause}, .core_pmus = {{.name = "cpu", .type = 4}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "full");
  ASSERT_THAT(Names(*opened), SizeIs(8));
  EXPECT_EQ(opened->layout.front().events.back(), kOpenerPause);
  EXPECT_THAT(opened->absent, IsEmpty());
}

// Refused alone it costs nothing else.
TEST_F(GroupOpener, APauseEventThatThePmuLacksIsAbsentWithItsErrno) {
  for (const int error : {ENOENT, EINVAL}) {
    perf_.refused[{PERF_TYPE_RAW, kOpenerPause.config}] = error;
    const auto opened = Open({.wanted = {.pause = kOpenerPause}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->set, "full");
    EXPECT_THAT(Names(*opened), SizeIs(7));
    ASSERT_THAT(Absent(*opened), ElementsAre("misc_retired.pause_inst"));
    EXPECT_EQ(opened->absent[0].error, error);
  }
}

// PAUSE shows a spin; misses of caches only rule work out.
TEST_F(GroupOpener, PauseOutlastsTheMissesOfCaches) {
  perf_.largest_group = 7;
  auto opened = Open({.wanted = {.pause = kOpenerPause}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "full");
  EXPECT_THAT(Absent(*opened), ElementsAre("cache-misses"));

  perf_.largest_group = 6;
  opened = Open({.wanted = {.pause = kOpenerPause}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->rung, 2u);
  EXPECT_EQ(Names(*opened).back(), kOpenerPause.name);
  EXPECT_THAT(Absent(*opened), ElementsAre("cache-misses", "L1-dcache-load-misses"));

  perf_.largest_group = 5;
  opened = Open({.wanted = {.pause = kOpenerPause}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Names(*opened),
              ElementsAre("cycles", "instructions", "branches", "branch-misses", "ref-cycles"));
}

TEST_F(GroupOpener, PauseMayTakeTurnsInAnotherGroup) {
  perf_.largest_group = 7;
  const auto opened = Open({.wanted = {.pause = kOpenerPause, .multiplex = true}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_THAT(opened->layout[1].events, ElementsAre(kOpenerPause));
  EXPECT_THAT(opened->absent, IsEmpty());
}

// Only the P-cores have it, and every core PMU counts the same.
TEST_F(GroupOpener, PauseIsAbsentOnAHybridHost) {
  for (const bool multiplex : {false, true}) {
    const auto opened =
        Open({.wanted = {.pause = kOpenerPause, .multiplex = multiplex},
              .core_pmus = {{.name = "cpu_core", .type = 4}, {.name = "cpu_atom", .type = 10}}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->set, "full");
    for (const GroupLayout& group : opened->layout) EXPECT_THAT(group.events, SizeIs(7));
    ASSERT_THAT(Absent(*opened), ElementsAre("misc_retired.pause_inst"));
    EXPECT_EQ(opened->absent[0].error, 0);
    EXPECT_THAT(opened->absent[0].reason, HasSubstr("hybrid"));
    for (const perf_event_attr& attr : perf_.opened) EXPECT_NE(attr.config, kOpenerPause.config);
  }
}

TEST_F(GroupOpener, PauseIsAbsentWhereItIsNotBelieved) {
  const auto opened = Open({.wanted = {.pause = kOpenerPause, .pause_distrust = "it stays 0"}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->layout.front().events, SizeIs(7));
  ASSERT_THAT(Absent(*opened), ElementsAre("misc_retired.pause_inst"));
  EXPECT_EQ(opened->absent[0].reason, "it stays 0");
  for (const perf_event_attr& attr : perf_.opened) EXPECT_NE(attr.config, kOpenerPause.config);
}

TEST_F(GroupOpener, WithoutAPmuASoftwareClockLeads) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "degraded");
  EXPECT_THAT(Names(*opened), ElementsAre("task-clock"));
  EXPECT_THAT(opened->degraded_reason, HasSubstr("no PMU"));
  EXPECT_THAT(Absent(*opened), SizeIs(7));
  EXPECT_EQ(opened->absent[0].error, ENOENT);
}

TEST_F(GroupOpener, WithoutASoftwareClockNothingIsLeft) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  for (const uint64_t clock : {PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK}) {
    perf_.refused[{PERF_TYPE_SOFTWARE, clock}] = ENOENT;
  }
  const auto opened = Open();
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("not even a software clock"));
}

TEST_F(GroupOpener, RequiredCountersAreAnErrorInstead) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  const auto opened = Open({.require_counters = true});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("--require-counters"));
}

// Without the right to count there is no degraded recording: it would hide what can be mended.
TEST_F(GroupOpener, NoPermissionIsAnError) {
  proc_.Write("proc/sys/kernel/perf_event_paranoid", "3\n");
  for (const int error : {EACCES, EPERM}) {
    Refuse(PERF_COUNT_HW_CPU_CYCLES, error);
    const auto opened = Open();
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr("kernel.perf_event_paranoid is 3"));
  }
}

TEST_F(GroupOpener, TooFewDescriptorsAreAnError) {
  Refuse(PERF_COUNT_HW_BRANCH_MISSES, EMFILE);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kResourceExhausted);
}

// What opens but leaves too few descriptors for all else is closed again, from the end.
TEST_F(GroupOpener, SomeDescriptorsAreSpared) {
  constexpr size_t kOfVcpu = 2;  // this one's /proc has no files
  const fakes::FewDescriptors few(kSpareDescriptors + 3 * kOfVcpu - 1);
  OpenOptions options{.wanted = {.set = EventSet::kMin}};
  EXPECT_EQ(Open(options).status().code(), absl::StatusCode::kResourceExhausted);
  options.as_many_as_open = true;
  const auto opened = Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->groups, SizeIs(2));
  EXPECT_THAT(opened->scheduling, SizeIs(2));
  ASSERT_THAT(opened->unopened, SizeIs(1));
  EXPECT_EQ(opened->unopened[0].vcpu.index, 2);
  EXPECT_EQ(opened->unopened[0].error, EMFILE);
}

TEST_F(GroupOpener, AThreadThatIsGoneIsListed) {
  perf_.refused_threads[12] = ESRCH;
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  ASSERT_THAT(opened->vcpus, SizeIs(2));
  EXPECT_EQ(opened->vcpus[1].tid, 13);
  ASSERT_THAT(opened->unopened, SizeIs(1));
  EXPECT_EQ(opened->unopened[0].vcpu.tid, 12);
  EXPECT_EQ(opened->unopened[0].error, ESRCH);
}

TEST_F(GroupOpener, NoThreadLeftIsNotFound) {
  for (const pid_t tid : {11, 12, 13}) perf_.refused_threads[tid] = ESRCH;
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
}

// Rule 9: our events could keep VMs from booting.
TEST_F(GroupOpener, AMediatedVpmuIsRefusedUnlessForced) {
  proc_.Write("sys/module/kvm_amd/parameters/enable_mediated_pmu", "Y\n");
  const auto refused = Open();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("kvm_amd.enable_mediated_pmu=Y"));
  EXPECT_THAT(perf_.opened, IsEmpty());
  EXPECT_TRUE(Open({.force_mediated_vpmu = true}).ok());
  proc_.Write("sys/module/kvm_amd/parameters/enable_mediated_pmu", "N\n");
  EXPECT_TRUE(Open().ok());
}

// Software counts take nothing from a VM's PMU.
TEST_F(GroupOpener, AMediatedVpmuDoesNotKeepSoftwareEventsOut) {
  proc_.Write("sys/module/kvm_amd/parameters/enable_mediated_pmu", "Y\n");
  const auto degraded = Open({.wanted = {.set = EventSet::kDegraded}});
  ASSERT_TRUE(degraded.ok()) << degraded.status();
  EXPECT_EQ(degraded->set, "degraded");
  const Event faults{.name = "page-faults",
                     .type = PERF_TYPE_SOFTWARE,
                     .config = PERF_COUNT_SW_PAGE_FAULTS,
                     .host_side = true};
  const auto named = Open({.wanted = {.events = {.groups = {{faults}}}}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->degraded_reason, HasSubstr("enable_mediated_pmu=Y"));
  EXPECT_THAT(Names(*named), ElementsAre("task-clock", "page-faults"));
  for (const perf_event_attr& attr : perf_.opened) EXPECT_EQ(attr.type, PERF_TYPE_SOFTWARE);
  const Event cycles = EventsOf(EventSet::kCycles).front();
  EXPECT_FALSE(Open({.wanted = {.events = {.groups = {{faults}, {cycles}}}}}).ok());
}

// What was counted before is not lost for the one that cannot be.
TEST_F(GroupOpener, AsManyAsOpenListsTheOthers) {
  perf_.refused_threads[12] = EMFILE;
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kResourceExhausted);
  const auto opened = Open({.as_many_as_open = true});
  ASSERT_TRUE(opened.ok());
  EXPECT_THAT(opened->groups, SizeIs(2));
  EXPECT_THAT(opened->scheduling, SizeIs(2));
  ASSERT_THAT(opened->unopened, SizeIs(1));
  EXPECT_EQ(opened->unopened[0].vcpu.index, 1);
  EXPECT_EQ(opened->unopened[0].error, EMFILE);
  for (const int error : {ENFILE, ENOMEM}) {
    perf_.refused_threads[12] = error;
    EXPECT_EQ(Open().status().code(), absl::StatusCode::kResourceExhausted) << error;
  }
}

TEST_F(GroupOpener, EventsByNameThatDoNotFitGoFromTheEnd) {
  perf_.largest_group = 2;
  const auto opened =
      Open({.wanted = {.events = {.groups = {SomeEvents({4}), SomeEvents({5}), SomeEvents({3})},
                                  .absent = {{"r1e", 0, "not listed"}}}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "custom");
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "hw4"));
  EXPECT_THAT(Absent(*opened), ElementsAre("r1e", "hw3", "hw5"));
}

TEST_F(GroupOpener, MoreEventsThanAGroupHoldsAreSaidToNeedMultiplex) {
  EventRequest request;
  for (uint64_t config = 1; config <= 9; ++config) request.groups.push_back(SomeEvents({config}));
  const auto opened = Open({.wanted = {.events = request}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Names(*opened), SizeIs(8));
  ASSERT_THAT(Absent(*opened), ElementsAre("hw9", "hw8"));
  EXPECT_THAT(opened->absent[0].reason, HasSubstr("--multiplex"));
}

TEST_F(GroupOpener, EightGroupsAreTheMostOfAVcpu) {
  perf_.largest_group = 1;
  EventRequest request;
  for (uint64_t config = 2; config <= 8; ++config) {  // and cycles
    request.groups.push_back(SomeEvents({config}));
  }
  auto opened = Open({.wanted = {.events = request, .multiplex = true}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->layout, SizeIs(8));
  request.groups.push_back(SomeEvents({9}));
  opened = Open({.wanted = {.events = request, .multiplex = true}});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("take 9 groups"));
}

// Of all that says that there is no PMU to be had.
TEST_F(GroupOpener, EachErrnoOfNoPmuDegrades) {
  for (const int error : {ENOENT, ENODEV, EOPNOTSUPP, EBUSY, EINVAL}) {
    Refuse(PERF_COUNT_HW_CPU_CYCLES, error);
    const auto opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->set, "degraded") << error;
  }
}

// What does not fit together takes turns; members of one unit stay together.
TEST_F(GroupOpener, MultiplexSpreadsTheEventsOverGroups) {
  perf_.largest_group = 3;
  const auto opened =
      Open({.wanted = {.events = {.groups = {SomeEvents({1}), SomeEvents({3, 4}), SomeEvents({5})}},
                       .multiplex = true}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(opened->multiplexed);
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_THAT(Names(*opened), ElementsAre("cycles", "hw1"));
  ASSERT_THAT(opened->layout[1].events, SizeIs(3));
  EXPECT_EQ(opened->layout[1].events[0].name, "hw3");
  EXPECT_EQ(opened->layout[1].events[2].name, "hw5");
  ASSERT_THAT(opened->groups, SizeIs(3));
  for (const VcpuGroups& groups : opened->groups) EXPECT_THAT(groups, SizeIs(2));
  EXPECT_THAT(opened->absent, IsEmpty());
}

// Arm's check of a group does not count members that are off, and ours are while they are opened.
TEST_F(GroupOpener, WhatFitsIsTriedWithEnabledEvents) {
  perf_.largest_group = 3;
  perf_.disabled_leader_is_free = true;
  const auto opened = Open({.wanted = {.set = EventSet::kCore, .multiplex = true}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_THAT(opened->layout[0].events, SizeIs(3));
}

TEST_F(GroupOpener, AUnitThatNoGroupHoldsIsAnError) {
  const auto opened =
      Open({.wanted = {.events = {.groups = {SomeEvents({1, 2, 3, 4, 5, 6, 7, 8, 9})}},
                       .multiplex = true}});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("at most 8"));
}

// EINVAL of an event that is invalid by itself says nothing about the size of the group.
TEST_F(GroupOpener, AnEventThatIsInvalidAloneCostsNoOther) {
  Refuse(PERF_COUNT_HW_BRANCH_MISSES, EINVAL);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->set, "full");
  EXPECT_THAT(Absent(*opened), ElementsAre("branch-misses"));
  EXPECT_THAT(opened->absent[0].reason, HasSubstr("even alone"));
}

TEST_F(GroupOpener, BracesThatThePmuCannotCountTogetherAreAnError) {
  perf_.largest_group = 2;
  const auto opened =
      Open({.wanted = {.events = {.groups = {SomeEvents({3, 4, 5})}}, .multiplex = true}});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("cannot count together"));
}

// Without a PMU the host-side events that were named are counted still, as many as open.
TEST_F(GroupOpener, DegradedLeavesOutWhatIsRefusedAndWhatIsTooMuch) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  EventRequest request;
  for (uint64_t config = 2; config <= 10; ++config) {
    request.groups.push_back({{.name = absl::StrCat("sw", config),
                               .type = PERF_TYPE_SOFTWARE,
                               .config = config,
                               .host_side = true}});
  }
  perf_.refused[{PERF_TYPE_SOFTWARE, 3}] = ENOENT;
  const auto opened = Open({.wanted = {.events = request}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "degraded");
  EXPECT_THAT(Names(*opened), SizeIs(8));
  EXPECT_THAT(Absent(*opened), ::testing::IsSupersetOf({"cycles", "sw3", "sw10"}));
  EXPECT_EQ(opened->absent.back().error, 0) << "sw10 was not tried";
}

// Software events need no counters: with --multiplex what is beyond one group gets another one, and
// braces are never torn apart.
TEST_F(GroupOpener, DegradedKeepsBracesWhole) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  EventRequest request;
  for (uint64_t group = 0; group < 3; ++group) {
    std::vector<Event>& unit = request.groups.emplace_back();
    for (uint64_t i = 0; i < 4; ++i) {
      unit.push_back({.name = absl::StrCat("sw", 4 * group + i),
                      .type = PERF_TYPE_SOFTWARE,
                      .config = 2 + 4 * group + i,
                      .host_side = true});
    }
  }
  auto opened = Open({.wanted = {.events = request}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Names(*opened), SizeIs(5));
  EXPECT_THAT(Absent(*opened), SizeIs(9));  // cycles and two groups
  opened = Open({.wanted = {.events = request, .multiplex = true}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_THAT(opened->layout[0].events, SizeIs(5));
  EXPECT_THAT(opened->layout[1].events, SizeIs(8));
}

// Between discovery and opening the thread ended and its TID went to another one.
TEST_F(GroupOpener, ATidThatWasReusedIsNotRead) {
  vm_.vcpus[1].start_time_ticks = 500;
  proc_.AddProcess(10, "qemu", {"qemu-system-x86_64"}, {});
  proc_.AddThread(10, 12, "CPU 1/KVM", 900);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_THAT(opened->vcpus, SizeIs(2));
  ASSERT_THAT(opened->unopened, SizeIs(1));
  EXPECT_EQ(opened->unopened[0].vcpu.tid, 12);
  vm_.vcpus[1].start_time_ticks = 900;
  EXPECT_THAT(Open()->unopened, IsEmpty());
  proc_.RemoveThread(10, 12);  // it is a thread of another process now
  EXPECT_THAT(Open()->unopened, SizeIs(1));
}

}  // namespace
}  // namespace vcpulse::kvm

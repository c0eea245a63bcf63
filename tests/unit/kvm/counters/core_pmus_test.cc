// Counter groups where a host has several core PMUs, or one that is named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/kvm/counters/group_opener_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using OnCorePmus = GroupOpenerFixture;

// An event that one core PMU lacks is left out on both, or the slots would not agree.
TEST_F(OnCorePmus, AHybridHostHasTheSameEventsOnEveryCorePmu) {
  perf_.refused[{PERF_TYPE_HARDWARE, (uint64_t{10} << 32) | PERF_COUNT_HW_REF_CPU_CYCLES}] = ENOENT;
  const auto opened =
      Open({.core_pmus = {{.name = "cpu_core", .type = 4}, {.name = "cpu_atom", .type = 10}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->core_pmus, 2u);
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_THAT(opened->layout[0].events, SizeIs(6));
  EXPECT_THAT(opened->layout[1].events, SizeIs(6));
  ASSERT_THAT(Absent(*opened), ElementsAre("ref-cycles"));
  EXPECT_THAT(opened->absent[0].reason, HasSubstr("cpu_atom"));
}

TEST_F(OnCorePmus, OfThreeCorePmusTheOthersStay) {
  perf_.refused[{PERF_TYPE_HARDWARE, (uint64_t{10} << 32) | PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  const auto opened = Open({.core_pmus = {{.name = "cpu_core", .type = 4},
                                          {.name = "cpu_atom", .type = 10},
                                          {.name = "cpu_lowpower", .type = 11}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_THAT(opened->layout, SizeIs(2));
  EXPECT_EQ(opened->layout[0].pmu, "cpu_core");
  EXPECT_EQ(opened->layout[1].pmu, "cpu_lowpower");
}

// The one core PMU that there is refuses cycles: that is no PMU, not one less.
TEST_F(OnCorePmus, TheOnlyCorePmuIsNotLeftOut) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, ENOENT);
  const auto opened = Open({.core_pmus = {{.name = "cpu", .type = 4}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "degraded");
  EXPECT_THAT(Absent(*opened), testing::Not(testing::Contains("cycles on cpu")));
}

// What is refused beside the core PMUs costs none of them.
TEST_F(OnCorePmus, AHybridHostLosesNoPmuByASoftwareEvent) {
  perf_.refused[{PERF_TYPE_SOFTWARE, 3}] = ENOENT;
  EventRequest request{.groups = {SomeEvents({4})}};
  request.groups.push_back(
      {{.name = "sw3", .type = PERF_TYPE_SOFTWARE, .config = 3, .host_side = true}});
  const auto opened =
      Open({.wanted = {.events = request},
            .core_pmus = {{.name = "cpu_core", .type = 4}, {.name = "cpu_atom", .type = 10}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->core_pmus, 2u);
  EXPECT_THAT(Absent(*opened), ElementsAre("sw3"));
}

// A core PMU without cycles costs its own cores, not the other PMU.
TEST_F(OnCorePmus, ACorePmuWithoutCyclesIsLeftOut) {
  perf_.refused[{PERF_TYPE_HARDWARE, (uint64_t{10} << 32) | PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  const auto opened =
      Open({.core_pmus = {{.name = "cpu_core", .type = 4}, {.name = "cpu_atom", .type = 10}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->core_pmus, 1u);
  ASSERT_THAT(opened->layout, SizeIs(1));
  EXPECT_THAT(Names(*opened), SizeIs(7));
  EXPECT_THAT(Absent(*opened), ElementsAre("cycles on cpu_atom"));
}

// As Arm's big.LITTLE before Linux 6.6 does: no PMU takes a bound event, each kernel still counts
// an unbound one.
TEST_F(OnCorePmus, WhereNoCorePmuTakesBoundEventsTheyAreOpenedUnbound) {
  for (const uint64_t type : {uint64_t{4}, uint64_t{10}}) {
    perf_.refused[{PERF_TYPE_HARDWARE, (type << 32) | PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  }
  const auto opened = Open({.core_pmus = {{.name = "armv8_cortex_a53", .type = 4},
                                          {.name = "armv8_cortex_a72", .type = 10}}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->set, "full");
  EXPECT_THAT(opened->layout, SizeIs(1));
}

}  // namespace
}  // namespace vcpulse::kvm

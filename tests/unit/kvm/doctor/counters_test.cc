// What doctor says of PMUs and event sets, with a fake kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "kvm/doctor/checks.h"
#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using State = Finding::State;

class DoctorCounters : public ::testing::Test {
 protected:
  DoctorCounters() {
    auto& group = perf_.groups[0];
    group.time_enabled_ns = 3'000'000;
    group.time_running_ns = 3'000'000;
    group.host_counts[PERF_COUNT_HW_CPU_CYCLES] = 9'000'000;
  }

  CounterContext Context() {
    return {
        .perf = perf_, .own = own_, .cores = cores_, .mediated = mediated_, .machine = machine_};
  }

  void Refuse(uint64_t config, int error) { perf_.refused[{PERF_TYPE_HARDWARE, config}] = error; }

  // A hybrid CPU whose thread cannot be moved here: CPU lists are empty.
  void MakeHybrid() {
    cores_ = {{.name = "cpu_atom", .type = 10}, {.name = "cpu_core", .type = 4}};
    for (const Pmu& pmu : cores_) {
      perf_.groups[0].host_counts[uint64_t{pmu.type} << 32] = pmu.type * 1'000'000;
    }
  }

  fakes::FakePerfEvents perf_;
  OwnRights own_;
  std::vector<Pmu> cores_ = {{.name = "cpu", .type = 4}};
  std::string mediated_;
  std::string machine_ = "x86_64";
};

TEST_F(DoctorCounters, AGoodHostHasNoFailures) {
  EXPECT_THAT(CheckPmus(Context()), ElementsAre(AllOf(Field(&Finding::state, State::kOk),
                                                      Field(&Finding::answered, "cpu"))));
  EXPECT_EQ(CheckHostCycles(Context()).answered, "3.00 GHz");
  const Finding guest_only = CheckGuestOnly(Context());
  EXPECT_EQ(guest_only.state, State::kOk);
  EXPECT_EQ(guest_only.answered, "opened, ran, counted 0");
  EXPECT_THAT(CheckEventSets(Context()),
              AllOf(SizeIs(5), Each(Field(&Finding::state, State::kOk))));
}

// The guest-only event as vcpulse records it, the others as any user may count himself.
TEST_F(DoctorCounters, ProbesWithTheRightAttributes) {
  CheckGuestOnly(Context());
  EXPECT_EQ(perf_.opened.back().exclude_host, 1u);
  EXPECT_EQ(perf_.opened.back().exclude_kernel, 0u);
  CheckHostCycles(Context());
  EXPECT_EQ(perf_.opened.back().exclude_host, 0u);
  EXPECT_EQ(perf_.opened.back().exclude_guest, 1u);
  EXPECT_EQ(perf_.opened.back().exclude_kernel, 1u);
  EXPECT_TRUE(perf_.groups[0].enabled);
}

// One cause, one obstacle: what follows from it is not tried.
TEST_F(DoctorCounters, WithoutAPmuThereIsOneFailure) {
  for (const int error : {ENOENT, ENODEV, EOPNOTSUPP}) {
    Refuse(PERF_COUNT_HW_CPU_CYCLES, error);
    cores_.clear();
    const auto pmus = CheckPmus(Context());
    ASSERT_THAT(pmus, SizeIs(1));
    EXPECT_EQ(pmus[0].state, State::kFail);
    EXPECT_FALSE(pmus[0].prevents);
    EXPECT_THAT(pmus[0].fix, HasSubstr("pmu=on"));
    EXPECT_EQ(CheckHostCycles(Context()).state, State::kUnknown);
    EXPECT_EQ(CheckGuestOnly(Context()).state, State::kUnknown);
    EXPECT_THAT(CheckEventSets(Context()), Each(Field(&Finding::state, State::kUnknown)));
  }
}

TEST_F(DoctorCounters, CyclesThatStandStillAreAFailure) {
  perf_.groups[0].host_counts.clear();
  Finding finding = CheckHostCycles(Context());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_THAT(finding.answered, HasSubstr("counted 0"));

  perf_.groups[0].host_counts[PERF_COUNT_HW_CPU_CYCLES] = 5;
  perf_.groups[0].time_running_ns = 0;
  finding = CheckHostCycles(Context());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_THAT(finding.fix, HasSubstr("nmi_watchdog"));
}

TEST_F(DoctorCounters, AGuestOnlyEventMustRunAndCountNothing) {
  perf_.groups[0].counts[PERF_COUNT_HW_CPU_CYCLES] = 17;
  Finding finding = CheckGuestOnly(Context());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_THAT(finding.answered, HasSubstr("counted 17"));

  perf_.groups[0].counts.clear();
  perf_.groups[0].time_running_ns = 0;
  finding = CheckGuestOnly(Context());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_THAT(finding.answered, HasSubstr("never ran"));
}

// Rule 9: our events could keep VMs from booting.
TEST_F(DoctorCounters, OpensNoGuestEventBesideAMediatedVpmu) {
  mediated_ = "KVM of this host runs with ...";
  EXPECT_EQ(CheckGuestOnly(Context()).state, State::kUnknown);
  EXPECT_THAT(perf_.opened, IsEmpty());
  CheckPmus(Context());
  CheckHostCycles(Context());
  CheckEventSets(Context());
  for (const perf_event_attr& attr : perf_.opened) EXPECT_EQ(attr.exclude_guest, 1u);
}

// `evidence` has all that it needs in core: PMUs of six counters do not hold full.
TEST_F(DoctorCounters, WhatCoreLacksIsAFailure) {
  Refuse(PERF_COUNT_HW_CACHE_MISSES, ENOENT);
  auto sets = CheckEventSets(Context());
  ASSERT_THAT(sets, SizeIs(5));
  EXPECT_EQ(sets[0].id, "events-full");
  EXPECT_EQ(sets[0].state, State::kNote);
  EXPECT_THAT(sets[0].answered, HasSubstr("cache-misses (absent"));
  EXPECT_EQ(sets[1].id, "events-core");
  EXPECT_EQ(sets[1].state, State::kOk);

  Refuse(PERF_COUNT_HW_BRANCH_MISSES, ENOENT);
  sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kFail);
  EXPECT_EQ(sets[1].state, State::kNote);
  EXPECT_EQ(sets[2].id, "events-branches");
  EXPECT_EQ(sets[2].state, State::kNote);
  EXPECT_EQ(sets[3].state, State::kOk);
  EXPECT_EQ(sets[4].state, State::kOk);
  EXPECT_THAT(sets[3].answered, HasSubstr("2 events as one group ran 100 %"));
}

// The whole group as a recording opens it, not only its leader.
TEST_F(DoctorCounters, SetsAreProbedAsARecordingOpensThem) {
  CheckEventSets(Context());
  const auto guest = [](const perf_event_attr& attr) { return attr.exclude_host != 0; };
  EXPECT_EQ(std::ranges::count_if(perf_.opened, guest), 7 + 5 + 4 + 2 + 1);

  perf_.groups[0].counts[PERF_COUNT_HW_BRANCH_MISSES] = 5;
  auto sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kFail);
  EXPECT_THAT(sets[0].answered, HasSubstr("branch-misses counted 5"));
  EXPECT_EQ(sets[3].state, State::kOk) << "branch-misses is none of min";
  perf_.groups[0].counts.clear();

  perf_.groups[0].guest_running_ns = 0;
  sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kFail);
  EXPECT_THAT(sets[0].answered, HasSubstr("guest-only: opened, but the PMU never ran it"));

  perf_.guest_only_error = EINVAL;
  EXPECT_EQ(CheckEventSets(Context())[0].state, State::kFail);
  perf_.guest_only_error = EACCES;
  EXPECT_EQ(CheckEventSets(Context())[0].state, State::kUnknown);
}

TEST_F(DoctorCounters, ASetThatSharesThePmuIsANote) {
  perf_.groups[0].time_running_ns = 2'880'000;
  EXPECT_EQ(CheckEventSets(Context())[0].state, State::kOk);
  perf_.groups[0].time_running_ns = 1'500'000;
  auto sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kNote);
  EXPECT_THAT(sets[0].answered, HasSubstr("ran 50 % of the time: others use the PMU"));
  EXPECT_NE(sets[0].fix, "");
  perf_.groups[0].time_running_ns = 3'000'000;
  perf_.groups[0].guest_running_ns = 750'000;
  sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kNote);
  EXPECT_THAT(sets[0].answered, HasSubstr("guest-only: 7 events as one group ran 25 %"));
}

TEST_F(DoctorCounters, AGroupThatDoesNotFitSaysSo) {
  perf_.largest_group = 4;
  const auto sets = CheckEventSets(Context());
  EXPECT_THAT(sets[0].answered,
              AllOf(HasSubstr("cache-misses (does not fit"), HasSubstr("ref-cycles (does not")));
  EXPECT_EQ(sets[2].state, State::kOk);
}

// x86 accepts a group that the NMI watchdog then keeps from running.
TEST_F(DoctorCounters, AGroupThatNeverRunsIsAFailure) {
  perf_.groups[0].time_running_ns = 0;
  const auto sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kFail);
  EXPECT_THAT(sets[0].answered, HasSubstr("never ran"));
  EXPECT_THAT(sets[0].fix, HasSubstr("nmi_watchdog"));
}

TEST_F(DoctorCounters, RefCyclesAreExpectedOfX86Alone) {
  Refuse(PERF_COUNT_HW_REF_CPU_CYCLES, ENOENT);
  EXPECT_EQ(CheckEventSets(Context())[0].state, State::kNote);
  machine_ = "aarch64";
  EXPECT_EQ(CheckEventSets(Context())[0].state, State::kOk);
}

TEST_F(DoctorCounters, HybridCpusAreProbedKindByKind) {
  MakeHybrid();
  const auto pmus = CheckPmus(Context());
  ASSERT_THAT(pmus, SizeIs(2));
  EXPECT_EQ(pmus[0].answered, "cpu_atom, cpu_core");
  EXPECT_EQ(pmus[1].id, "hybrid");
  EXPECT_EQ(pmus[1].state, State::kNote);
  EXPECT_EQ(CheckHostCycles(Context()).answered, "cpu_atom: 3.33 GHz; cpu_core: 1.33 GHz");

  Refuse((uint64_t{10} << 32) | PERF_COUNT_HW_BRANCH_MISSES, ENOENT);
  const auto sets = CheckEventSets(Context());
  EXPECT_EQ(sets[0].state, State::kFail);
  EXPECT_THAT(sets[0].answered,
              AllOf(HasSubstr("cpu_atom: lacks branch-misses"), Not(HasSubstr("cpu_core: lacks"))));
}

// A cpuset may keep vcpulse off the CPUs of one kind: nothing can be told of it.
TEST_F(DoctorCounters, AKindThatVcpulseMayNotRunOnIsUnknown) {
  MakeHybrid();
  perf_.groups[0].time_running_ns = 0;
  EXPECT_EQ(CheckHostCycles(Context()).state, State::kUnknown);
  EXPECT_EQ(CheckGuestOnly(Context()).state, State::kUnknown);
  EXPECT_THAT(CheckEventSets(Context())[0].answered, HasSubstr("cpu_atom: vcpulse may not run"));
}

// The same from the sysfs of a hybrid laptop.
TEST(DoctorPmus, KindsOfCoresAreNamedWithTheirCpus) {
  fakes::FakePerfEvents perf;
  const OwnRights own;
  const std::vector<Pmu> cores = CorePmus(ReadPmus(fakes::HostTree("hybrid")));
  const auto pmus = CheckPmus({.perf = perf, .own = own, .cores = cores, .machine = "x86_64"});
  ASSERT_THAT(pmus, SizeIs(2));
  EXPECT_THAT(pmus[1].answered, ::testing::MatchesRegex("cpu_atom on [0-9]+ CPUs, cpu_core on "
                                                        "[0-9]+ CPUs: .*"));
}

// The cause is told once, by "paranoid".
TEST_F(DoctorCounters, NoPermissionIsNotSaidAgain) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, EACCES);
  EXPECT_EQ(CheckPmus(Context())[0].state, State::kOk);
  EXPECT_EQ(CheckHostCycles(Context()).state, State::kUnknown);
  EXPECT_EQ(CheckGuestOnly(Context()).state, State::kUnknown);
  EXPECT_THAT(CheckEventSets(Context()), Each(Field(&Finding::state, State::kUnknown)));
}

TEST_F(DoctorCounters, AnExclusiveUserIsAFailureWithItsAdvice) {
  Refuse(PERF_COUNT_HW_CPU_CYCLES, EBUSY);
  const Finding finding = CheckHostCycles(Context());
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_THAT(finding.answered, HasSubstr("exclusive user"));
}

TEST(DoctorNmiWatchdog, IsANote) {
  fakes::ProcDir proc;
  EXPECT_EQ(CheckNmiWatchdog(proc.root()).state, State::kOk);
  proc.Write("proc/sys/kernel/nmi_watchdog", "0\n");
  EXPECT_EQ(CheckNmiWatchdog(proc.root()).answered, "off");
  proc.Write("proc/sys/kernel/nmi_watchdog", "1\n");
  const Finding finding = CheckNmiWatchdog(proc.root());
  EXPECT_EQ(finding.state, State::kNote);
  EXPECT_THAT(finding.fix, HasSubstr("sysctl kernel.nmi_watchdog=0"));
}

TEST(DoctorLateness, GivesNearestRanks) {
  std::vector<int64_t> lateness_ns;
  for (int i = 100; i >= 1; --i) lateness_ns.push_back(i * 1000);
  Finding finding = CheckLateness(lateness_ns);
  EXPECT_EQ(finding.answered, "late by p50 50us, p99 99us, max 100us");
  EXPECT_EQ(finding.state, State::kOk);
  EXPECT_THAT(finding.tried, HasSubstr("100 sleeps"));

  lateness_ns = {5'000, 6'000'000, 4'000};
  finding = CheckLateness(lateness_ns);
  EXPECT_EQ(finding.answered, "late by p50 5us, p99 6ms, max 6ms");
  EXPECT_EQ(finding.state, State::kNote);
  EXPECT_THAT(finding.fix, HasSubstr("--realtime"));
  EXPECT_EQ(CheckLateness({}).state, State::kUnknown);
}

TEST(DoctorLateness, SleepsAreNeverEarlyAndBounded) {
  const auto lateness_ns = MeasureLateness_ns(5, absl::Milliseconds(1));
  EXPECT_THAT(lateness_ns, AllOf(SizeIs(5), Each(::testing::Ge(0))));
  // Each sleep takes at least 40 ms: the limit of 0.3 s ends it long before the count does.
  EXPECT_THAT(MeasureLateness_ns(1000, absl::Milliseconds(40)), SizeIs(::testing::Le(8)));
}

}  // namespace
}  // namespace vcpulse::kvm::doctor

#include "monitor/recorder/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "monitor/recorder/session_record.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using fakes::FakeClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class RecordingTest : public RecordingFixture {
 protected:
  fakes::SampledVm db_{perf_, proc_, "db", 20, 21, 1};
};

TEST_F(RecordingTest, SamplesBecomeVerdicts) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) {
    web_.Ran(0, 100'000'000, 100'000'000, 100'000'000);
    web_.Ran(1, 100'000'000, 100'000'000, 50'000'000);
    Tick();
  }
  ASSERT_THAT(writer_.ticks, SizeIs(3));
  EXPECT_EQ(writer_.ticks[0].verdicts[0].band, core::Band::kNone);
  EXPECT_EQ(writer_.ticks[2].verdicts[0].band, core::Band::kProductive);
  EXPECT_EQ(writer_.ticks[2].verdicts[1].band, core::Band::kSpinning);
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(1));
  EXPECT_THAT(writer_.VcpuSets()[0].events(), ElementsAre("cycles", "instructions"));
  EXPECT_EQ(recording_.progress().samples, 3u);
  EXPECT_EQ(recording_.progress().vcpu_samples, 6u);
  EXPECT_EQ(recording_.progress().Bands()[static_cast<size_t>(core::Band::kSpinning)], 1u);
}

TEST_F(RecordingTest, AFailedReadIsAGapThatNamesVcpuAndErrno) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  Tick();
  web_.group(1).read_error = EIO;
  Tick();
  web_.group(1).read_error = 0;
  Tick();
  const auto gaps = writer_.Gaps();
  ASSERT_THAT(gaps, SizeIs(1));
  EXPECT_EQ(gaps[0].vm(), 1u);
  EXPECT_EQ(gaps[0].vcpu_index(), 1u);
  EXPECT_EQ(gaps[0].error(), EIO);
  EXPECT_EQ(gaps[0].first_tick(), 1u);
  EXPECT_EQ(gaps[0].last_tick(), 1u);
  EXPECT_THAT(writer_.ticks, SizeIs(5));  // three of db, two of web
  EXPECT_EQ(recording_.progress().gaps, 1u);
}

TEST_F(RecordingTest, OtherThreadsBeginAnotherEpochOfThatVmOnly) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  Tick();
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());  // nothing changed
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));

  kvm::Vm changed = web_.vm();
  changed.vcpus.pop_back();
  ASSERT_TRUE(recording_.Track(changed).ok());
  Tick();
  Tick();
  const auto sets = writer_.VcpuSets();
  ASSERT_THAT(sets, SizeIs(3));
  EXPECT_EQ(sets[2].vm(), 1u);
  EXPECT_EQ(sets[2].epoch(), 2u);
  EXPECT_THAT(sets[2].vcpus(), SizeIs(1));
  EXPECT_THAT(writer_.ended, ElementsAre(Pair(1, 1)));
  EXPECT_EQ(writer_.ticks.back().vm, 1u);
  EXPECT_EQ(writer_.ticks.back().epoch, 2u);
  for (const auto& tick : writer_.ticks) {
    if (tick.vm == 2) {
      EXPECT_EQ(tick.epoch, 1u);
    }
  }
  EXPECT_THAT(writer_.LifeCycleKinds(),
              ElementsAre(v1::LifeCycle::KIND_VM_FOUND, v1::LifeCycle::KIND_VM_FOUND,
                          v1::LifeCycle::KIND_VCPUS_CHANGED));
}

// TIDs are reused: the same TID with another start time is another thread.
TEST_F(RecordingTest, AReusedTidBeginsAnotherEpoch) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  kvm::Vm changed = web_.vm();
  changed.vcpus[1].start_time_ticks += 5;
  ASSERT_TRUE(recording_.Track(changed).ok());
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));
}

TEST_F(RecordingTest, AnEndedVmClosesItsEpochAndCanComeBackAsAnother) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  recording_.Ended(KeyOf(web_.vm()), "the VMM process has ended");
  Tick();
  EXPECT_THAT(writer_.ended, ElementsAre(Pair(1, 1)));
  EXPECT_TRUE(recording_.idle());
  EXPECT_THAT(recording_.vms(), IsEmpty());

  kvm::Vm restarted = web_.vm();  // the same name and PID, a later start
  restarted.start_time_ticks += 100;
  ASSERT_TRUE(recording_.Track(restarted).ok());
  Tick();
  EXPECT_EQ(writer_.VcpuSets().back().vm(), 2u);
  EXPECT_EQ(writer_.VcpuSets().back().instance().name(), "web");
}

// A group that opens and never runs: one set down after three ticks, said in the timeline.
TEST_F(RecordingTest, CountersThatCountNothingAreSaidOnce) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 4; ++i) {
    web_.Ran(0, 100'000'000, 100'000'000, 100'000'000);
    web_.Ran(1, 100'000'000, 0, 0);
    Tick();
  }
  EXPECT_EQ(writer_.ticks.back().verdicts[0].band, core::Band::kProductive);
  EXPECT_EQ(writer_.ticks.back().verdicts[1].rule, core::Rule::kNotCounted);
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("vCPU 1 run and count no guest")));
}

TEST_F(RecordingTest, AGroupThatNeverRunsStepsDown) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) {
    for (int vcpu = 0; vcpu < 2; ++vcpu) {
      web_.group(vcpu).time_enabled_ns += 100'000'000;  // running stays 0
    }
    EXPECT_THAT(writer_.VcpuSets(), SizeIs(1)) << i;
    Tick();
  }
  const auto sets = writer_.VcpuSets();
  ASSERT_THAT(sets, SizeIs(2));
  EXPECT_EQ(sets[1].event_set(), "cycles");
  ASSERT_THAT(sets[1].absent_events(), SizeIs(1));
  EXPECT_EQ(sets[1].absent_events(0).event(), "instructions");
  EXPECT_THAT(sets[1].absent_events(0).reason(), HasSubstr("never ran"));
  EXPECT_EQ(sets[1].absent_events(0).error(), 0) << "it was not refused";
  EXPECT_EQ(writer_.LifeCycleKinds().back(), v1::LifeCycle::KIND_SET_REDUCED);
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("stepped down to cycles")));
}

// A rival that comes in the middle and leaves again: down after a second without the PMU, up again
// after a pause, and a longer one where that was too early.
TEST_F(RecordingTest, ARivalThatComesAndGoesIsFollowed) {
  const auto run = [this](int ticks, bool on_pmu) {
    for (int i = 0; i < ticks; ++i) {
      if (on_pmu) {
        db_.Ran(0, 100'000'000, 100'000'000, 100'000'000);
      } else {
        db_.group(0).time_enabled_ns += 100'000'000;
      }
      const size_t sets = writer_.VcpuSets().size();
      Tick();
      if (writer_.VcpuSets().size() != sets) db_.group(0) = {};  // new groups begin at 0
    }
    return writer_.VcpuSets().back().event_set();
  };
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  EXPECT_EQ(run(20, true), "min");
  EXPECT_EQ(run(11, false), "min");
  ASSERT_EQ(run(1, false), "cycles");
  EXPECT_THAT(writer_.VcpuSets()[1].absent_events(0).reason(), HasSubstr("stopped running"));
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("event set min no longer runs")));

  EXPECT_EQ(run(98, true), "cycles");
  EXPECT_EQ(run(3, true), "min");  // 10 s later, and too early
  EXPECT_EQ(run(2, false), "min");
  EXPECT_EQ(run(1, false), "cycles");
  EXPECT_EQ(run(198, true), "cycles");
  EXPECT_EQ(run(3, true), "min");
  EXPECT_EQ(run(50, true), "min");
  using Kind = v1::LifeCycle;
  EXPECT_THAT(writer_.LifeCycleKinds(),
              ElementsAre(Kind::KIND_VM_FOUND, Kind::KIND_SET_REDUCED, Kind::KIND_SET_RESTORED,
                          Kind::KIND_SET_REDUCED, Kind::KIND_SET_RESTORED));
  EXPECT_THAT(writer_.VcpuSets().back().absent_events(), IsEmpty());
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("event set min runs again")));
}

// A try that opens no larger set, or no hardware counter, leaves the set that runs.
TEST_F(RecordingTest, ATryThatOpensNoMoreChangesNothing) {
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  for (int i = 0; i < 3; ++i) {
    db_.group(0).time_enabled_ns += 100'000'000;
    Tick();
  }
  db_.group(0) = {};
  const auto run_on = [this] {
    for (int i = 0; i < 400; ++i) {  // 40 s: tries after 10, 30 and 70 s
      db_.Ran(0, 100'000'000, 100'000'000, 0);
      Tick();
    }
  };
  ASSERT_EQ(writer_.VcpuSets().back().event_set(), "cycles");
  perf_.largest_group = 1;
  run_on();
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));
  perf_.guest_only_error = ENOENT;
  run_on();
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));
}

// What holds every counter gives none to a larger set either.
TEST_F(RecordingTest, AGroupThatDoesNotRunDoesNotClimb) {
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  for (int i = 0; i < 300; ++i) {
    db_.group(0).time_enabled_ns += 100'000'000;
    Tick();
  }
  EXPECT_THAT(writer_.VcpuSets(), SizeIs(2));
  EXPECT_THAT(recording_.TakeNotices(), ElementsAre(HasSubstr("stepped down to cycles"),
                                                    HasSubstr("there is no smaller one")));
}

// Groups that take turns: each is watched on its own, and smaller ones are tried next, which give
// no event up.
TEST_F(RecordingTest, ARotatingGroupThatNeverRunsMakesThemSmaller) {
  kvm::OpenOptions open;
  open.wanted = {.set = kvm::EventSet::kCore, .multiplex = true};
  perf_.largest_group = 3;
  const auto leader = std::pair(db_.tid(0), uint64_t{PERF_COUNT_HW_BRANCH_MISSES});
  perf_.own_groups[leader] = {};
  Recording recording({.root = proc_.root(),
                       .open = open,
                       .residency = {{.max_hz = 1e9}},
                       .now_ns = FakeClock::Now},
                      perf_, writer_);
  ASSERT_TRUE(recording.Track(db_.vm()).ok());
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(1));
  EXPECT_THAT(writer_.VcpuSets()[0].events(), ElementsAre("cycles", "instructions", "branches"));
  ASSERT_THAT(writer_.VcpuSets()[0].further_groups(), SizeIs(1));
  EXPECT_THAT(writer_.VcpuSets()[0].further_groups(0).events(),
              ElementsAre("branch-misses", "L1-dcache-load-misses"));
  // A second for its first turn, then three ticks.
  for (uint64_t i = 0; i < 12; ++i) {
    db_.Ran(0, 100'000'000, 100'000'000, 100'000'000);
    perf_.own_groups[leader].time_enabled_ns += 100'000'000;  // running stays 0
    EXPECT_THAT(writer_.VcpuSets(), SizeIs(1)) << i;
    const int64_t now = FakeClock::Now() + 100'000'000;
    FakeClock::now_ns = now;
    recording.sampler().TakeCommands();
    recording.sampler().Tick(i, now, now);
    recording.Drain();
  }
  ASSERT_THAT(writer_.VcpuSets(), SizeIs(2));
  EXPECT_THAT(writer_.VcpuSets()[1].events(), ElementsAre("cycles", "instructions"));
  EXPECT_THAT(writer_.VcpuSets()[1].further_groups(), SizeIs(2));
  EXPECT_THAT(writer_.VcpuSets()[1].absent_events(), IsEmpty());
  EXPECT_THAT(recording.TakeNotices(), ElementsAre(HasSubstr("groups of at most 2")));
}

// What docs/architecture.md says, whatever the profile calls HALTED.
TEST_F(RecordingTest, TheStateIsReadBelowTenPercent) {
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  for (int i = 0; i < 2; ++i) {
    db_.Ran(0, 9'000'000, 1, 1);  // 9 % of a tick
    Tick();
  }
  EXPECT_EQ(writer_.ticks.back().sample.vcpus[0].state, core::ThreadState::kBlocked);
}

TEST_F(RecordingTest, AnExitedThreadMakesItsVmSuspect) {
  web_.vm().vcpus[1].start_time_ticks = 0;  // the opener does not look: it ends right after
  proc_.RemoveThread(10, 12);
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  EXPECT_THAT(recording_.TakeSuspects(), ElementsAre(KeyOf(web_.vm())));
  EXPECT_THAT(recording_.TakeSuspects(), IsEmpty());
  EXPECT_THAT(writer_.ticks, SizeIs(1));
  EXPECT_THAT(writer_.Gaps(), IsEmpty());
}

TEST_F(RecordingTest, SkippedIsSaidOncePerInstance) {
  for (int i = 0; i < 2; ++i) {
    recording_.Skipped(web_.vm(), v1::LifeCycle::SKIP_REASON_NO_KVM, "it runs without KVM");
  }
  EXPECT_THAT(recording_.TakeNotices(), SizeIs(1));
  EXPECT_THAT(writer_.LifeCycleKinds(), ElementsAre(v1::LifeCycle::KIND_VM_SKIPPED));
  EXPECT_EQ(writer_.records.back().life_cycle().skip_reason(), v1::LifeCycle::SKIP_REASON_NO_KVM);
}

// From its end on nothing of it is missed.
TEST_F(RecordingTest, TheEndOfASkippedVmIsSaid) {
  recording_.Skipped(web_.vm(), v1::LifeCycle::SKIP_REASON_NOT_OPENED, "too many open files");
  ASSERT_THAT(recording_.skipped(), SizeIs(1));
  EXPECT_EQ(recording_.skipped().front().pid, web_.vm().pid);
  recording_.Ended(KeyOf(web_.vm()), "process 10 has ended");
  recording_.Ended(KeyOf(web_.vm()), "process 10 has ended");
  EXPECT_THAT(recording_.skipped(), IsEmpty());
  EXPECT_THAT(writer_.LifeCycleKinds(),
              ElementsAre(v1::LifeCycle::KIND_VM_SKIPPED, v1::LifeCycle::KIND_VM_ENDED));
  const v1::LifeCycle& ended = writer_.records.back().life_cycle();
  EXPECT_EQ(ended.vm(), 0u);
  EXPECT_EQ(ended.detail(), "process 10 has ended");
  EXPECT_EQ(ended.instance().pid(), 10u);
}

TEST_F(RecordingTest, ASkippedVmThatIsRecordedEndsOnce) {
  recording_.Skipped(web_.vm(), v1::LifeCycle::SKIP_REASON_NOT_OPENED, "too many open files");
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  EXPECT_THAT(recording_.skipped(), IsEmpty());
  recording_.Ended(KeyOf(web_.vm()), "process 10 has ended");
  EXPECT_THAT(writer_.LifeCycleKinds(),
              ElementsAre(v1::LifeCycle::KIND_VM_SKIPPED, v1::LifeCycle::KIND_VM_FOUND,
                          v1::LifeCycle::KIND_VM_ENDED));
  EXPECT_EQ(writer_.records.back().life_cycle().vm(), 1u);
}

TEST_F(RecordingTest, RetireAllEndsInIdle) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  ASSERT_TRUE(recording_.Track(db_.vm()).ok());
  Tick();
  EXPECT_FALSE(recording_.idle());
  recording_.RetireAll();
  Tick();
  EXPECT_TRUE(recording_.idle());
  EXPECT_THAT(writer_.ended, SizeIs(2));
}

std::string BlindSpot(v1::ResidencyMethod method) {
  return MakeSession({}, {.residency = {.method = method}}).residency_blind_spot();
}

// People read beside a residency what its method cannot see.
TEST(SessionRecord, EachMethodOfResidencyHasItsBlindSpot) {
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_REF_CYCLES), HasSubstr("only"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_MAX_FREQUENCY), HasSubstr("lower bound"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_TIME_ENABLED), HasSubstr("upper bound"));
  EXPECT_THAT(BlindSpot(v1::RESIDENCY_METHOD_HIGHEST_RATE), HasSubstr("too high"));
}

TEST(SessionRecord, NamesTheClassifierAndItsNumbers) {
  core::Profile profile;
  profile.presence.halted_enter = 0.03;
  const v1::Session session = MakeSession({}, {.classifier = core::ClassifierChoice::kEvidence,
                                               .profile = profile,
                                               .profile_name = "amd-zen4"});
  EXPECT_EQ(session.classifier().name(), "evidence");
  EXPECT_EQ(session.classifier().profile(), "amd-zen4");
  EXPECT_EQ(session.classifier().halted_enter(), 0.03);
  EXPECT_EQ(session.classifier().productive_from(), 1.0);
}

}  // namespace

}  // namespace vcpulse::recorder

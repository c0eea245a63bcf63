// What a recording says of a VM's life: paused and going on, and coming again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "monitor/recorder/recording.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using core::Band;
using core::Rule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kHalted[] = "kvm_vcpu_block";
constexpr char kHeld[] = "futex_do_wait";

class RecordingLifeCycle : public RecordingFixture {
 protected:
  RecordingLifeCycle() {
    SetBoth('S', kHalted);
    proc_.Write("proc/10/task/10/wchan", "poll_schedule_timeout");
  }

  void SetBoth(char state, const std::string& wchan) {
    for (int vcpu = 0; vcpu < 2; ++vcpu) Set(vcpu, state, wchan);
  }

  void Set(int vcpu, char state, const std::string& wchan) {
    web_.SetState(vcpu, state);
    proc_.Write("proc/10/task/" + std::to_string(web_.tid(vcpu)) + "/wchan", wchan);
  }

  // Both threads ran a moment, as those that are kicked out of KVM_RUN do.
  void Kick() {
    for (int vcpu = 0; vcpu < 2; ++vcpu) web_.Ran(vcpu, 50'000, 20'000, 10'000);
  }

  // The verdict of one vCPU in the latest tick.
  core::Verdict Last(int vcpu = 0) const {
    return writer_.ticks.back().verdicts.at(static_cast<size_t>(vcpu));
  }

  void ExpectHalted() const {
    EXPECT_EQ(Last(0).band, Band::kHalted);
    EXPECT_EQ(Last(1).band, Band::kHalted);
  }

  void ExpectPaused() const {
    for (int vcpu = 0; vcpu < 2; ++vcpu) {
      EXPECT_EQ(Last(vcpu).band, Band::kUnknown);
      EXPECT_EQ(Last(vcpu).rule, Rule::kPaused);
    }
  }

  // Paused or resumed, in order.
  std::vector<v1::LifeCycle> Pauses() const {
    std::vector<v1::LifeCycle> pauses;
    for (const auto& record : writer_.records) {
      if (!record.has_life_cycle()) continue;
      const auto kind = record.life_cycle().kind();
      if (kind == v1::LifeCycle::KIND_VM_PAUSED || kind == v1::LifeCycle::KIND_VM_RESUMED) {
        pauses.push_back(record.life_cycle());
      }
    }
    return pauses;
  }
};

TEST_F(RecordingLifeCycle, AQmpStopIsPausedAndGoesOnHalted) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) Tick();
  ExpectHalted();
  EXPECT_THAT(Pauses(), IsEmpty()) << "a halted guest is not paused";

  SetBoth('S', kHeld);
  Kick();
  Tick();  // the tick of the stop
  Tick();
  ExpectPaused();
  EXPECT_EQ(writer_.ticks.back().sample.vcpus[1].state, core::ThreadState::kPaused);
  ASSERT_EQ(Pauses().size(), 1u);
  EXPECT_EQ(Pauses()[0].kind(), v1::LifeCycle::KIND_VM_PAUSED);
  EXPECT_THAT(Pauses()[0].detail(), HasSubstr("outside KVM_RUN"));
  EXPECT_EQ(Pauses()[0].mono_ns(), writer_.ticks.back().sample.wake_ns);
  Tick();
  ExpectPaused();

  SetBoth('S', kHalted);
  Kick();
  Tick();
  ExpectHalted();
  ASSERT_EQ(Pauses().size(), 2u);
  EXPECT_EQ(Pauses()[1].kind(), v1::LifeCycle::KIND_VM_RESUMED);
  EXPECT_EQ(Pauses()[1].mono_ns(), writer_.ticks.back().sample.wake_ns);
  EXPECT_THAT(writer_.VcpuSets()[0].notes(), IsEmpty());
}

TEST_F(RecordingLifeCycle, ASigstopIsPaused) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 2; ++i) Tick();
  SetBoth('T', "do_signal_stop");
  Tick();
  ExpectPaused();
  Tick();
  ASSERT_EQ(Pauses().size(), 1u);
  EXPECT_EQ(Pauses()[0].detail(), "SIGSTOP");
  SetBoth('S', kHalted);
  Kick();
  Tick();
  ExpectHalted();
  EXPECT_EQ(Pauses().back().kind(), v1::LifeCycle::KIND_VM_RESUMED);
}

// One vCPU waits for a lock of its VMM while the other is halted: the guest goes on.
TEST_F(RecordingLifeCycle, OneHeldVcpuIsNoPause) {
  Set(1, 'S', kHeld);
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) Tick();
  ExpectHalted();
  EXPECT_THAT(Pauses(), IsEmpty());
}

// The look is taken once, when the thread falls quiet: whatever wchan shows later does not count
// until the thread has run.
TEST_F(RecordingLifeCycle, AQuietThreadIsLookedAtOnce) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 2; ++i) Tick();
  SetBoth('S', kHeld);
  for (int i = 0; i < 2; ++i) Tick();
  ExpectHalted();
}

// A monitor's command runs on the paused vCPU threads: no resumption.
TEST_F(RecordingLifeCycle, AMonitorCommandDoesNotResume) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  SetBoth('S', kHeld);
  for (int i = 0; i < 2; ++i) Tick();
  ExpectPaused();
  Kick();
  Tick();
  ExpectPaused();
  Tick();
  ExpectPaused();
  EXPECT_EQ(Pauses().size(), 1u);
}

TEST_F(RecordingLifeCycle, WithoutTheRightItStaysHaltedWithANote) {
  SetBoth('S', "0");
  proc_.Write("proc/10/task/10/wchan", "0");
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) Tick();
  ExpectHalted();
  EXPECT_THAT(writer_.VcpuSets()[0].notes(),
              ElementsAre(HasSubstr("paused and halted cannot be distinguished")));
}

TEST_F(RecordingLifeCycle, AnIrqchipInUserspaceIsNeverPausedByItsWait) {
  SetBoth('S', kHeld);
  web_.vm().userspace_irqchip = true;
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 3; ++i) Tick();
  ExpectHalted();
  EXPECT_THAT(Pauses(), IsEmpty());
  EXPECT_THAT(writer_.VcpuSets()[0].notes(), ElementsAre(HasSubstr("kernel_irqchip=off")));
}

// Another epoch of a paused VM does not say it again.
TEST_F(RecordingLifeCycle, APauseOutlastsAnEpoch) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  SetBoth('S', kHeld);
  for (int i = 0; i < 2; ++i) Tick();
  kvm::Vm changed = web_.vm();
  changed.vcpus.pop_back();
  ASSERT_TRUE(recording_.Track(changed).ok());
  for (int i = 0; i < 3; ++i) Tick();
  EXPECT_EQ(Last().rule, Rule::kPaused);
  EXPECT_EQ(writer_.ticks.back().epoch, 2u);
  EXPECT_EQ(Pauses().size(), 1u);
}

// The VMM lives on without any vCPU thread: nothing to sample until one comes.
TEST_F(RecordingLifeCycle, AVmMayLoseAllItsVcpusAndGetOthers) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  for (int i = 0; i < 2; ++i) Tick();
  kvm::Vm none = web_.vm();
  none.vcpus.clear();
  ASSERT_TRUE(recording_.Track(none).ok());
  for (int i = 0; i < 2; ++i) Tick();
  EXPECT_EQ(writer_.ticks.size(), 2u);
  EXPECT_TRUE(recording_.idle());
  const v1::LifeCycle& lost = writer_.records.back().life_cycle();
  EXPECT_EQ(lost.kind(), v1::LifeCycle::KIND_VCPUS_CHANGED);
  EXPECT_THAT(lost.detail(), HasSubstr("lost vCPU 0 (TID 11), lost vCPU 1 (TID 12); none is left"));
  ASSERT_EQ(recording_.vms().size(), 1u) << "still watched";

  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  EXPECT_EQ(writer_.ticks.back().vm, 1u);
  EXPECT_EQ(writer_.ticks.back().epoch, 2u);
}

TEST_F(RecordingLifeCycle, ARestartUnderTheSameNameSaysSo) {
  ASSERT_TRUE(recording_.Track(web_.vm()).ok());
  Tick();
  recording_.Ended(KeyOf(web_.vm()), "the VMM process has ended");
  fakes::SampledVm again(perf_, proc_, "web", 30, 31, 1);
  fakes::SampledVm nameless(perf_, proc_, "pid-40", 40, 41, 1);
  ASSERT_TRUE(recording_.Track(again.vm()).ok());
  ASSERT_TRUE(recording_.Track(nameless.vm()).ok());
  recording_.Ended(KeyOf(nameless.vm()), "the VMM process has ended");
  nameless.vm().start_time_ticks += 100;
  ASSERT_TRUE(recording_.Track(nameless.vm()).ok());

  std::vector<std::string> found;
  for (const auto& record : writer_.records) {
    if (record.life_cycle().kind() == v1::LifeCycle::KIND_VM_FOUND) {
      found.push_back(record.life_cycle().detail());
    }
  }
  ASSERT_EQ(found.size(), 4u);
  EXPECT_THAT(found[0], Not(HasSubstr("again")));
  EXPECT_THAT(found[1], HasSubstr("again: 'web' ran as PID 10 before"));
  EXPECT_THAT(found[3], Not(HasSubstr("again"))) << "a PID that is used anew is not a name";
}

// Of so many names that have ended the first in order are forgotten: memory has a bound.
TEST_F(RecordingLifeCycle, TheNamesOfEndedVmsHaveABound) {
  constexpr int kMost = 4096;
  kvm::Vm vm = web_.vm();
  const auto found = [&](int number) {
    vm.name = absl::StrCat("vm", 100'000 + number);
    ++vm.start_time_ticks;
    EXPECT_TRUE(recording_.Track(vm).ok());
    std::string detail;
    for (const auto& record : writer_.records) {
      if (record.life_cycle().kind() == v1::LifeCycle::KIND_VM_FOUND) {
        detail = record.life_cycle().detail();
      }
    }
    writer_.records.clear();
    recording_.Ended(KeyOf(vm), "the VMM process has ended");
    Tick();
    return detail;
  };
  for (int i = 0; i < kMost; ++i) found(i);
  EXPECT_THAT(found(7), HasSubstr("again")) << "a known name takes no place";
  EXPECT_THAT(found(0), HasSubstr("again"));
  EXPECT_THAT(found(kMost), Not(HasSubstr("again")));
  EXPECT_THAT(found(1), HasSubstr("again"));
  EXPECT_THAT(found(0), Not(HasSubstr("again"))) << "it had to make room";
}

}  // namespace
}  // namespace vcpulse::recorder

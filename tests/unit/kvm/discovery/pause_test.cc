#include "kvm/discovery/pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::HasSubstr;

// The names are those of the kernels named in pause.h.
TEST(ParseWchan, TellsKvmFromUserspace) {
  for (const char* inside : {"kvm_vcpu_block", "kvm_vcpu_halt", "kvm_vcpu_block\n"}) {
    EXPECT_EQ(ParseWchan(inside), WaitPlace::kKvm) << inside;
  }
  for (const char* outside :
       {"futex_do_wait", "futex_wait_queue", "futex_wait_queue_me", "__futex_wait"}) {
    EXPECT_EQ(ParseWchan(outside), WaitPlace::kUserspace) << outside;
  }
  // "0": no right to ptrace, or running. A vCPU that waits for its disk is neither.
  for (const char* other : {"0", "", "\n", "io_schedule", "do_signal_stop", "akvm_x", "a futex_"}) {
    EXPECT_EQ(ParseWchan(other), WaitPlace::kUnknown) << other;
  }
}

class PauseTest : public ::testing::Test {
 protected:
  PauseTest() {
    tree_.AddProcess(10, "qemu-system-x86", {"qemu-system-x86_64"}, {});
    tree_.AddThread(10, 11, "CPU 0/KVM", 1000);
    vm_.pid = 10;
  }

  void SetWchan(pid_t tid, const std::string& text) {
    tree_.Write("proc/10/task/" + std::to_string(tid) + "/wchan", text);
  }

  fakes::ProcDir tree_;
  Vm vm_;
};

TEST_F(PauseTest, ReadsThroughTheRoot) {
  EXPECT_EQ(ReadWaitPlace(tree_.root(), 10, 11), WaitPlace::kUnknown) << "no such file";
  SetWchan(11, "futex_do_wait");
  EXPECT_EQ(ReadWaitPlace(tree_.root(), 10, 11), WaitPlace::kUserspace);
}

TEST_F(PauseTest, OneThreadThatShowsWhereItWaitsIsEnough) {
  SetWchan(10, "poll_schedule_timeout.constprop.0");
  SetWchan(11, "0");  // runs right now
  EXPECT_EQ(WhyPauseCannotBeTold(tree_.root(), vm_), "");
}

TEST_F(PauseTest, WithoutTheRightItSaysWhatIsMissing) {
  SetWchan(10, "0");
  SetWchan(11, "0");
  EXPECT_THAT(WhyPauseCannotBeTold(tree_.root(), vm_), HasSubstr("CAP_SYS_PTRACE"));
}

TEST_F(PauseTest, AnIrqchipInUserspaceHidesIt) {
  SetWchan(11, "futex_do_wait");
  vm_.userspace_irqchip = true;
  EXPECT_THAT(WhyPauseCannotBeTold(tree_.root(), vm_), HasSubstr("kernel_irqchip=off"));
}

}  // namespace
}  // namespace vcpulse::kvm

#include "kvm/competitors/competitor_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSwitch[] =
    "name: sched_switch\nID: 372\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";

constexpr char kWakeup[] =
    "name: sched_wakeup\nID: 374\nformat:\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

// What a kernel does is tested where there is one (tests/kvm/competitors_test.cc).
class CompetitorSamplerTest : public ::testing::Test {
 protected:
  CompetitorSamplerTest() {
    proc_.AddProcess(10, "qemu", {"qemu"}, {});
    proc_.AddThread(10, 101, "CPU 0/KVM", 1000);
    vm_.pid = 10;
    vm_.name = "web";
    vm_.vcpus.push_back({.index = 0, .tid = 101, .start_time_ticks = 1000});
  }

  void Write(const std::string& name, const std::string& text) {
    proc_.Write("sys/kernel/tracing/events/sched/" + name + "/format", text);
  }
  std::string Refused() {
    return std::string(CompetitorSampler::Open(perf_, vm_, proc_.root()).status().message());
  }

  fakes::FakePerfEvents perf_;
  fakes::ProcDir proc_;
  Vm vm_;
};

TEST_F(CompetitorSamplerTest, WithoutTracefsItSaysWhatItNeeds) {
  EXPECT_THAT(Refused(),
              AllOf(HasSubstr("sched:sched_switch"), HasSubstr("tracefs"), HasSubstr("root")));
}

TEST_F(CompetitorSamplerTest, ATracepointOfOtherFieldsIsNotGuessedAt) {
  Write("sched_switch", "name: sched_switch\nID: 372\nformat:\n");
  Write("sched_wakeup", kWakeup);
  EXPECT_EQ(Refused(), "sched:sched_switch has no field common_type");
  Write("sched_switch", kSwitch);
  Write("sched_wakeup", "name: sched_wakeup\nID: 374\nformat:\n");
  EXPECT_EQ(Refused(), "sched:sched_wakeup has no field pid");
}

// The scheduler tells PIDs of the host's.
TEST_F(CompetitorSamplerTest, AnotherPidNamespaceIsRefused) {
  proc_.Write("proc/self/ns/pid", "");  // of some inode
  EXPECT_THAT(Refused(), HasSubstr("another PID namespace"));
}

TEST_F(CompetitorSamplerTest, WithoutRightsItSaysWhichAreNeeded) {
  Write("sched_switch", kSwitch);
  Write("sched_wakeup", kWakeup);
  perf_.refused[{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY}] = EACCES;
  EXPECT_THAT(Refused(), AllOf(HasSubstr("the switches of TID 101"), HasSubstr("CAP_PERFMON"),
                               HasSubstr("Permission denied")));
}

}  // namespace
}  // namespace vcpulse::kvm

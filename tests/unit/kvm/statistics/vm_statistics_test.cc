#include "kvm/statistics/vm_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kKernel[] = "6.12.1";

int64_t clock_ns = 0;
int64_t Now() { return clock_ns; }

class VmStatisticsTest : public ::testing::Test {
 protected:
  VmStatisticsTest() {
    clock_ns = 5'000'000'000;
    proc_.AddProcess(10, "qemu", {"qemu"}, {});
    for (int i = 0; i < 2; ++i) {
      proc_.AddThread(10, 101 + i, "CPU/KVM", 1000);
      SetSched(101 + i, 3 + i, 100 + i, 20 + i);
      vm_.vcpus.push_back({.index = i, .kvm_id = i, .tid = 101 + i, .start_time_ticks = 1000});
    }
    vm_.pid = 10;
  }

  void SetSched(pid_t tid, int migrations, int voluntary, int involuntary) {
    proc_.Write(
        "proc/10/task/" + std::to_string(tid) + "/sched",
        "CPU 0/KVM (101, #threads: 7)\n------------------------------\n"
        "se.exec_start                                :         31685.383624\n"
        "se.sum_exec_runtime                          :         12.000" +
            std::to_string(tid) +
            "\nse.nr_migrations                             :  " + std::to_string(migrations) +
            "\nnr_switches                                  :  999\n"
            "nr_voluntary_switches                        :  " +
            std::to_string(voluntary) + "\nnr_involuntary_switches                      :  " +
            std::to_string(involuntary) + "\n");
  }

  fakes::ProcDir proc_;
  Vm vm_;
};

TEST_F(VmStatisticsTest, TheSchedulersCountsOfEachThread) {
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  const auto all = statistics.Read();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].source, "scheduler");
  EXPECT_THAT(all[0].names,
              ElementsAre("migrations", "voluntary_switches", "involuntary_switches", "run_ns"));
  ASSERT_EQ(all[0].vcpus.size(), 2u);
  EXPECT_THAT(all[0].vcpus[0].values, ElementsAre(3, 100, 20, 12'000'101));
  EXPECT_THAT(all[0].vcpus[1].values, ElementsAre(4, 101, 21, 12'000'102));
  EXPECT_EQ(all[0].vcpus[1].mono_ns, 5'000'000'000);
  EXPECT_TRUE(all[0].vcpus[1].cpu.has_value());
}

// A TID that is another thread's now, and one that is gone, are not read as if nothing had been.
TEST_F(VmStatisticsTest, AnotherThreadsCountsAreNotRead) {
  proc_.AddThread(10, 102, "other", 2000);
  SetSched(102, 1, 1, 1);
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  const auto all = statistics.Read();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].vcpus[0].values.empty());
  EXPECT_TRUE(all[0].vcpus[1].values.empty());
  EXPECT_FALSE(all[0].vcpus[1].cpu);
  proc_.RemoveThread(10, 101);
  EXPECT_THAT(statistics.Read(), IsEmpty());
}

// A kernel without CONFIG_SCHED_DEBUG.
TEST_F(VmStatisticsTest, WithoutSchedFilesThereIsNoSource) {
  for (const char* tid : {"101", "102"}) {
    std::filesystem::remove(proc_.Path(std::string("proc/10/task/") + tid + "/sched"));
  }
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  EXPECT_THAT(statistics.Read(), IsEmpty());
}

TEST_F(VmStatisticsTest, SaysWhyNothingOfKvmIsRead) {
  EXPECT_THAT(VmStatistics(proc_.root(), vm_, kKernel, Now).kvm_refused(),
              HasSubstr("QEMU does from 8.1 on"));
  proc_.AddLink(10, 7, "anon_inode:kvm-vcpu-stats:0");
  proc_.AddLink(10, 8, "anon_inode:kvm-vcpu-stats:1");
  EXPECT_THAT(VmStatistics(proc_.root(), vm_, "6.4.9-arch", Now).kvm_refused(),
              HasSubstr("not safe on this kernel (6.4.9-arch"));
  proc_.AddLink(10, 9, "anon_inode:kvm-vcpu-stats:0");  // of a second VM in this process
  EXPECT_THAT(VmStatistics(proc_.root(), vm_, kKernel, Now).kvm_refused(),
              HasSubstr("more than one descriptor of the statistics of KVM's vCPU 0"));
  vm_.vcpus[0].kvm_id.reset();  // as of `record --tid`: its place says nothing
  EXPECT_EQ(VmStatistics(proc_.root(), vm_, kKernel, Now).kvm_refused(),
            "KVM's id of vCPU 0 is not known");
  vm_.vcpus[0].kvm_id = 5;
  EXPECT_THAT(VmStatistics(proc_.root(), vm_, kKernel, Now).kvm_refused(),
              HasSubstr("no descriptor of the statistics of KVM's vCPU 5"));
}

// KVM's debugfs has sums: those of a VM with one vCPU are its own.
TEST_F(VmStatisticsTest, DebugfsTellsOfAVmWithOneVcpu) {
  proc_.AddDebugfsVcpu(10, 14, 0, 101);
  const std::string folder = "sys/kernel/debug/kvm/10-14/";
  proc_.Write(folder + "exits", "77\n");
  proc_.Write(folder + "halt_exits", "5\n");
  proc_.Write(folder + "io_exits", "x\n");
  vm_.vcpus.pop_back();
  vm_.vcpu_descriptors = 1;
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  const auto all = statistics.Read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].source, "kvm-debugfs");
  EXPECT_THAT(all[1].names, ElementsAre("exits", "halt_exits"));
  ASSERT_EQ(all[1].vcpus.size(), 1u);
  EXPECT_THAT(all[1].vcpus[0].values, ElementsAre(77, 5));
  EXPECT_EQ(statistics.kvm_refused(), "");

  // One of two vCPUs, one that may have others, two VMs of one process.
  vm_.vcpu_descriptors = 2;
  EXPECT_EQ(VmStatistics(proc_.root(), vm_, kKernel, Now).Read().size(), 1u);
  vm_.vcpu_descriptors = 0;
  EXPECT_EQ(VmStatistics(proc_.root(), vm_, kKernel, Now).Read().size(), 1u);
  vm_.vcpu_descriptors = 1;
  proc_.AddDebugfsVcpu(10, 15, 0, 103);
  VmStatistics of_two(proc_.root(), vm_, kKernel, Now);
  EXPECT_EQ(of_two.Read().size(), 1u);
  EXPECT_THAT(of_two.kvm_refused(), HasSubstr("debugfs has them too"));
}

TEST(StatsDescriptorsHoldTheirVm, FromKernel65On) {
  for (const char* new_one : {"6.5", "6.5.0-1-amd64", "6.18.44-fc-v669", "7.0.1", "10.0"}) {
    EXPECT_TRUE(StatsDescriptorsHoldTheirVm(new_one)) << new_one;
  }
  for (const char* old : {"6.4.16", "6.1.0-40-arm64", "5.15", "", "x", "6", "6.x"}) {
    EXPECT_FALSE(StatsDescriptorsHoldTheirVm(old)) << old;
  }
}

class QmpStatisticsTest : public VmStatisticsTest {
 protected:
  QmpStatisticsTest() {
    script_.answers["query-cpus-fast"] =
        R"({"return": [{"thread-id": 101, "qom-path": "/machine/a", "cpu-index": 0},)"
        R"( {"thread-id": 102, "qom-path": "/machine/b", "cpu-index": 1}]})"
        "\n";
    // As QEMU 7.2, the second vCPU first, with a histogram between.
    script_.answers["query-stats"] =
        R"({"return": [{"provider": "kvm", "qom-path": "/machine/b", "stats": )"
        R"([{"name": "exits", "value": 50}, {"name": "halt_exits", "value": 9}]},)"
        R"( {"provider": "kvm", "qom-path": "/machine/a", "stats": )"
        R"([{"name": "exits", "value": 40}, {"name": "h", "value": [1, 2]}, )"
        R"({"name": "halt_exits", "value": 8}]}]})"
        "\n";
  }

  fakes::QmpServer::Script script_;
};

TEST_F(QmpStatisticsTest, WhatQemuTellsOfEachVcpuAtMostOnceASecond) {
  fakes::QmpServer server(proc_.Path("q"), script_);
  vm_.qmp_address = server.address();
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  const auto all = statistics.Read();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].source, "kvm-qmp");
  EXPECT_THAT(all[1].names, ElementsAre("exits", "halt_exits"));
  EXPECT_THAT(all[1].vcpus[0].values, ElementsAre(40, 8));
  EXPECT_THAT(all[1].vcpus[1].values, ElementsAre(50, 9));
  EXPECT_EQ(statistics.kvm_refused(), "");

  clock_ns += 800'000'000;
  EXPECT_EQ(statistics.Read().size(), 1u);
  clock_ns += 100'000'000;
  EXPECT_EQ(statistics.Read().size(), 2u);
  EXPECT_EQ(server.clients(), 2);
}

// A QEMU that does not answer is left in peace for a minute; the reason is kept.
TEST_F(QmpStatisticsTest, ARefusalIsNotAskedAgainForAMinute) {
  script_.answers["query-stats"] =
      R"({"error": {"class": "CommandNotFound", "desc": "no query-stats"}})"
      "\n";
  fakes::QmpServer server(proc_.Path("q"), script_);
  vm_.qmp_address = server.address();
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  EXPECT_EQ(statistics.Read().size(), 1u);
  EXPECT_THAT(statistics.kvm_refused(), HasSubstr("query-stats: 7.1 or newer"));
  clock_ns += 59'000'000'000;
  EXPECT_EQ(statistics.Read().size(), 1u);
  EXPECT_EQ(server.clients(), 1);
  clock_ns += 1'000'000'000;
  statistics.Read();
  EXPECT_EQ(server.clients(), 2);
}

// From then on, so that values of two sources are not mixed.
TEST_F(QmpStatisticsTest, WhereQmpHasNoneDebugfsTells) {
  script_.answers["query-stats"] = "{\"return\": []}\n";
  fakes::QmpServer server(proc_.Path("q"), script_);
  vm_.qmp_address = server.address();
  vm_.vcpus.pop_back();
  vm_.vcpu_descriptors = 1;
  proc_.AddDebugfsVcpu(10, 14, 0, 101);
  proc_.Write("sys/kernel/debug/kvm/10-14/exits", "77\n");
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  for (int turn = 0; turn < 2; ++turn) {
    const auto all = statistics.Read();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].source, "kvm-debugfs");
    EXPECT_EQ(statistics.kvm_refused(), "");
    clock_ns += 120'000'000'000;
  }
  EXPECT_EQ(server.clients(), 1);
}

// TCG, or a QEMU without KVM's provider.
TEST_F(QmpStatisticsTest, NoStatisticsAreARefusal) {
  script_.answers["query-stats"] = "{\"return\": []}\n";
  fakes::QmpServer server(proc_.Path("q"), script_);
  vm_.qmp_address = server.address();
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  EXPECT_EQ(statistics.Read().size(), 1u);
  EXPECT_THAT(statistics.kvm_refused(), HasSubstr("QEMU has no statistics"));
}

// A name that must be looked up would hold the control thread.
TEST_F(QmpStatisticsTest, OnlyUnixSocketsAreAsked) {
  fakes::QmpServer server(script_);
  vm_.qmp_address = server.address();
  VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
  EXPECT_EQ(statistics.Read().size(), 1u);
  EXPECT_EQ(server.clients(), 0);
}

TEST_F(QmpStatisticsTest, AnAnswerThatMakesNoSenseIsRefused) {
  for (const char* answer :
       {R"({"return": {}})", R"({"return": [{"provider": "kvm", "qom-path": 1, "stats": []}]})",
        R"({"return": [{"qom-path": "/machine/c", "stats": []}]})",
        R"({"return": [{"qom-path": "/machine/a"}]})",
        R"({"return": [{"qom-path": "/machine/a", "stats": [{"value": 1}]}]})",
        R"({"return": [{"qom-path": "/machine/a", "stats": [7]}]})",
        R"({"return": [{"qom-path": "/machine/a", "stats": []}, )"
        R"({"qom-path": "/machine/a", "stats": []}]})"}) {
    script_.answers["query-stats"] = std::string(answer) + "\n";
    fakes::QmpServer server(proc_.Path("q"), script_);
    vm_.qmp_address = server.address();
    VmStatistics statistics(proc_.root(), vm_, kKernel, Now);
    EXPECT_EQ(statistics.Read().size(), 1u) << answer;
    EXPECT_THAT(statistics.kvm_refused(), HasSubstr("makes no sense")) << answer;
    std::filesystem::remove(proc_.Path("q"));
  }
}

}  // namespace
}  // namespace vcpulse::kvm

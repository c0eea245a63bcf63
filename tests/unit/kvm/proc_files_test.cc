#include "kvm/proc_files.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Taken from a QEMU vCPU thread, with guest time put in.
constexpr char kVcpuStat[] =
    "9757 (CPU 0/KVM) R 9696 9695 7581 0 -1 138412224 256 0 0 0 11 145 0 0 20 0 7 0 118493 "
    "465809408 9547 18446744073709551615 93960312225792 93960318086229 140721447427360 0 0 0 "
    "2147219511 4100 16963 0 0 0 -1 3 0 0 0 77 0 93960321198328 93960326402480 93960483573760 "
    "140721447430569 140721447430782 140721447430782 140721447432156 0\n";

TEST(ParseTaskStat, TakesTheFieldsByTheirNumbers) {
  const auto stat = ParseTaskStat(kVcpuStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 9696);
  EXPECT_EQ(stat->start_time_ticks, 118493u);
  EXPECT_EQ(stat->cpu, 3);
  EXPECT_EQ(stat->guest_time_ticks, 77u);
  EXPECT_FALSE(stat->kernel_thread);
  EXPECT_FALSE(stat->Exited());
}

// A process may call itself anything: a name like this one shifted fields for others.
TEST(ParseTaskStat, CountsAfterTheLastParenthesis) {
  std::string text = kVcpuStat;
  text.replace(text.find("CPU 0/KVM"), 9, ") S 1 2 3 (x) y");
  EXPECT_EQ(ParseTaskStat(text), ParseTaskStat(kVcpuStat));
  EXPECT_EQ(ParseStatComm(text), ") S 1 2 3 (x) y");
}

TEST(ParseTaskStat, KernelThreadsAndZombiesAreTold) {
  std::string text = kVcpuStat;
  text.replace(text.find("138412224"), 9, "2129984");  // flags of a kthread
  text.replace(text.find(") R"), 3, ") Z");
  const auto stat = ParseTaskStat(text);
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->kernel_thread);
  EXPECT_TRUE(stat->Exited());
}

// A read that was cut short must not give a value made of the wrong field.
TEST(ParseTaskStat, EveryCutIsRefusedUpToTheGuestTime) {
  const std::string text = kVcpuStat;
  const size_t guest_time = text.find(" 77 ") + 1;
  for (size_t size = 0; size <= guest_time; ++size) {
    EXPECT_FALSE(ParseTaskStat(text.substr(0, size))) << size;
  }
}

TEST(ParseTaskStat, WhatIsNoNumberIsRefused) {
  for (const char* field : {"118493", " 77 ", "9696", "138412224"}) {
    std::string text = kVcpuStat;
    text.replace(text.find(field) + (field[0] == ' ' ? 1 : 0), 1, "x");
    EXPECT_FALSE(ParseTaskStat(text)) << field;
  }
  EXPECT_FALSE(ParseTaskStat("no parenthesis"));
  EXPECT_FALSE(ParseTaskStat(""));
}

TEST(ParseSchedStat, TakesRunTimeAndDelay) {
  EXPECT_EQ(ParseSchedStat("1461363552 37857982 247\n"), (SchedStat{1461363552, 37857982, 247}));
}

// A partial line is no data: a missing delay is not a delay of 0.
TEST(ParseSchedStat, RefusesAnythingElse) {
  for (const char* text : {"", "\n", "1", "1 2", "1 2 x", "-1 2 3", "1 18446744073709551616 3"}) {
    EXPECT_FALSE(ParseSchedStat(text)) << text;
  }
}

TEST(Status, TellsProcessAndNamespaces) {
  constexpr char kStatus[] = "Name:\tTgid: 5\nTgid:\t31\nPid:\t40\nNSpid:\t40\t7\t3\nNSpgid:\t9\n";
  EXPECT_EQ(ParseStatusPid(kStatus, "Tgid"), 31);
  EXPECT_EQ(ParseStatusPid(kStatus, "Gid"), std::nullopt);
  EXPECT_THAT(ParseNsPids(kStatus), ElementsAre(40, 7, 3));
  EXPECT_THAT(ParseNsPids("Name:\tx\n"), IsEmpty());
  EXPECT_THAT(ParseNsPids("NSpid:\t4\tx\n"), IsEmpty());
}

// An empty argument counts: dropping it would move the value of an option.
TEST(ParseCmdline, KeepsEmptyArgumentsAndAnUnfinishedOne) {
  using namespace std::string_literals;
  EXPECT_THAT(ParseCmdline("qemu\0-name\0\0-m\0"s), ElementsAre("qemu", "-name", "", "-m"));
  EXPECT_THAT(ParseCmdline("a\0b"s), ElementsAre("a", "b"));
  EXPECT_THAT(ParseCmdline(""), IsEmpty());
}

TEST(ParseKvmLink, KnowsTheFormsOfAllKernels) {
  using Kind = KvmLink::Kind;
  EXPECT_EQ(ParseKvmLink("anon_inode:kvm-vm"), (KvmLink{Kind::kVm, std::nullopt}));
  EXPECT_EQ(ParseKvmLink("anon_inode:[kvm-vm]"), (KvmLink{Kind::kVm, std::nullopt}));
  EXPECT_EQ(ParseKvmLink("anon_inode:kvm-vcpu:12"), (KvmLink{Kind::kVcpu, 12}));
  EXPECT_EQ(ParseKvmLink("anon_inode:[kvm-vcpu:0]"), (KvmLink{Kind::kVcpu, 0}));
  EXPECT_EQ(ParseKvmLink("anon_inode:kvm-vcpu"), (KvmLink{Kind::kVcpu, std::nullopt}));
  EXPECT_EQ(ParseKvmLink("anon_inode:kvm-vcpu-stats:3"), (KvmLink{Kind::kVcpuStats, 3}));
  EXPECT_EQ(ParseKvmLink("anon_inode:[kvm-vcpu-stats:0]"), (KvmLink{Kind::kVcpuStats, 0}));
}

// A file of such a name, or another device of KVM, proves nothing.
TEST(ParseKvmLink, RefusesLookAlikes) {
  for (const char* link :
       {"/tmp/anon_inode:kvm-vm", "anon_inode:kvm-vm2", "anon_inode:kvm-vcpu:", "/dev/kvm",
        "anon_inode:kvm-vcpu:-1", "anon_inode:kvm-vcpu:1x", "anon_inode:kvm-vcpu-stats:",
        "anon_inode:kvm-vcpu-stats", "anon_inode:kvm-vcpu-stats:-1", "anon_inode:kvm-vm-stats",
        "anon_inode:[kvm-vm", "anon_inode:[eventfd]", "anon_inode:", ""}) {
    EXPECT_FALSE(ParseKvmLink(link)) << link;
  }
}

// Of a real thread, but for some lines between.
TEST(ParseTaskSched, TakesTheCountsByTheirLabels) {
  constexpr char kSched[] =
      "CPU 0/KVM (15435, #threads: 4)\n"
      "-------------------------------------------------------------------\n"
      "se.exec_start                                :      31685383.624783\n"
      "se.sum_exec_runtime                          :          2046.375001\n"
      "se.nr_migrations                             :                   12\n"
      "nr_switches                                  :                 4105\n"
      "nr_voluntary_switches                        :                 4000\n"
      "nr_involuntary_switches                      :                  105\n"
      "se.load.weight                               :              1048576\n"
      "current_node=0, numa_group_id=0\n";
  EXPECT_EQ(ParseTaskSched(kSched), (TaskSched{12, 4000, 105, 2'046'375'001}));
  for (const char* label : {"se.nr_migrations", "nr_voluntary", "nr_involuntary", "se.sum"}) {
    std::string without = kSched;
    without.replace(without.find(label), 2, "xx");
    EXPECT_FALSE(ParseTaskSched(without)) << label;
  }
  std::string negative = kSched;
  negative.replace(negative.find(" 12\n"), 3, "-12");
  EXPECT_FALSE(ParseTaskSched(negative));
  EXPECT_FALSE(ParseTaskSched(""));
  for (const char* time : {"2046.37", "2046.x75001", ".375001", "18446744073709551615.000000"}) {
    std::string odd = kSched;
    odd.replace(odd.find("2046.375001"), 11, time);
    EXPECT_FALSE(ParseTaskSched(odd)) << time;
  }
  std::string whole = kSched;
  whole.replace(whole.find("2046.375001"), 11, "2046");
  EXPECT_EQ(ParseTaskSched(whole)->run_ns, 2'046'000'000u);
}

TEST(ParseDebugfsVmDir, TakesPidAndDescriptor) {
  EXPECT_EQ(ParseDebugfsVmDir("9753-11"), (DebugfsVmDir{9753, 11}));
  for (const char* name : {"exits", "9753", "-11", "9753-", "9753-x", "0-1", "1--1", "1-2-3"}) {
    EXPECT_FALSE(ParseDebugfsVmDir(name)) << name;
  }
}

TEST(ReadSmallFile, TellsWhatIsMissingFromWhatIsEmpty) {
  EXPECT_EQ(ReadSmallFile("/dev/null"), "");
  EXPECT_EQ(ReadSmallFile("/proc/self/no-such-file"), std::nullopt);
  EXPECT_EQ(ReadSmallFile("/proc"), std::nullopt);
}

// The name may hold parentheses and look like a state of its own.
TEST(ParseTaskState, IsTheLetterAfterTheName) {
  EXPECT_EQ(ParseTaskState("7 (a) R b) S 1 7 7 0\n"), 'S');
  EXPECT_EQ(ParseTaskState("7 (CPU 0/KVM) R 1"), 'R');
  for (const char* broken :
       {"", "7 (x", "7 (x)", "7 (x) ", "7 (x) S", "7 (x)SS 1", "7 (x) SS1", "7 (x)   "}) {
    EXPECT_EQ(ParseTaskState(broken), std::nullopt) << broken;
  }
}

}  // namespace
}  // namespace vcpulse::kvm

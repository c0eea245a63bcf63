#include "kvm/events/pmu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/host_tree.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<Pmu> PmusOf(const std::string& host) { return ReadPmus(fakes::HostTree(host)); }

std::vector<std::string> Names(const std::vector<Pmu>& pmus) {
  std::vector<std::string> names;
  for (const Pmu& pmu : pmus) names.push_back(pmu.name);
  return names;
}

Pmu PmuOf(const std::string& host, const std::string& name) {
  for (const Pmu& pmu : PmusOf(host)) {
    if (pmu.name == name) return pmu;
  }
  ADD_FAILURE() << host << " has no " << name;
  return {};
}

TEST(ParsePmuField, KnowsTheThreeWords) {
  EXPECT_EQ(ParsePmuField("config:0-3"), (PmuField{0, {0, 1, 2, 3}}));
  EXPECT_EQ(ParsePmuField("config1:1"), (PmuField{1, {1}}));
  EXPECT_EQ(ParsePmuField("config2:62-63"), (PmuField{2, {62, 63}}));
}

// AMD's event number is split; the kernel's own tools fill the bits from the lowest up, in
// whatever order the ranges were written.
TEST(ParsePmuField, SplitFieldsAreFilledFromTheLowestBit) {
  EXPECT_EQ(ParsePmuField("config:0-1,32-33"), (PmuField{0, {0, 1, 32, 33}}));
  EXPECT_EQ(ParsePmuField("config:32-33,0-1"), (PmuField{0, {0, 1, 32, 33}}));
}

TEST(ParsePmuField, RefusesAnythingElse) {
  for (const char* text : {"", "config", "config:", "config:64", "config:7-0", "config:0-", "0-7",
                           "config3:0-7", "Config:0", "config:0,,1", "config:0x1", "config:-1",
                           "config: 0", "config:0-7\n", "config:1-2-3", "config:0-4294967296"}) {
    EXPECT_EQ(ParsePmuField(text), std::nullopt) << text;
  }
}

TEST(ParseCpuList, TakesRangesAndSingleNumbers) {
  EXPECT_THAT(ParseCpuList("0-3,8,10-11").value(), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(ParseCpuList("5").value(), ElementsAre(5));
  EXPECT_THAT(ParseCpuList("3,1-2,2").value(), ElementsAre(1, 2, 3));
}

// A range as large as an int would take the memory of the machine.
TEST(ParseCpuList, RefusesAnythingElse) {
  for (const char* text : {"", " ", "0-", "a", "3-1", "0-2147483647", "1 2", "0-3\n", "-1"}) {
    EXPECT_EQ(ParseCpuList(text), std::nullopt) << text;
  }
}

TEST(ReadPmus, AreAllThatTheHostShowsByName) {
  EXPECT_THAT(Names(PmusOf("intel")),
              ElementsAre("breakpoint", "cpu", "msr", "software", "tracepoint", "uncore_imc_0"));
}

TEST(ReadPmus, TypeFormatAndEventsAreTheFiles) {
  const Pmu cpu = PmuOf("intel", "cpu");
  EXPECT_EQ(cpu.type, 4u);
  EXPECT_THAT(cpu.cpus, IsEmpty());
  EXPECT_FALSE(cpu.per_cpu_only);
  EXPECT_EQ(cpu.format.at("edge"), (PmuField{0, {18}}));
  EXPECT_EQ(cpu.format.at("ldlat").word, 1);
  EXPECT_THAT(cpu.format.at("ldlat").bits, SizeIs(16));
  EXPECT_EQ(cpu.events.at("cpu-cycles"), "event=0x3c");
  EXPECT_EQ(cpu.events.at("mem-loads"), "event=0xcd,umask=0x1,ldlat=3");
}

// "x.scale" and "x.unit" say how to print x; they are no events.
TEST(ReadPmus, WhatStandsBesideAnEventIsNoEvent) {
  EXPECT_FALSE(PmuOf("intel", "cpu").events.contains("topdown-recovery-bubbles.scale"));
  EXPECT_THAT(PmuOf("intel", "uncore_imc_0").events,
              UnorderedElementsAre(Pair("cas_count_read", "event=0x04,umask=0x03"),
                                   Pair("clockticks", "event=0xff,umask=0x10")));
}

TEST(ReadPmus, ACpumaskMeansThatNoThreadCanBeCounted) {
  EXPECT_TRUE(PmuOf("intel", "uncore_imc_0").per_cpu_only);
  EXPECT_TRUE(PmuOf("amd", "amd_l3").per_cpu_only);
  EXPECT_FALSE(PmuOf("arm64", "armv8_pmuv3_0").per_cpu_only);
}

TEST(ReadPmus, ASplitEventFieldOfAmd) {
  EXPECT_EQ(PmuOf("amd", "cpu").format.at("event"),
            (PmuField{0, {0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35}}));
}

// What cannot be trusted is absent: a PMU of type 0 would be PERF_TYPE_HARDWARE, and an empty
// `cpus` means that none is online, not all.
TEST(ReadPmus, LeaveOutWhatTheyCannotRead) {
  fakes::ProcDir root;
  const std::string devices = "sys/bus/event_source/devices/";
  root.Write(devices + "no_type/format/event", "config:0-7\n");
  root.Write(devices + "bad_type/type", "x\n");
  root.Write(devices + "offline/type", "9\n");
  root.Write(devices + "offline/cpus", "\n");
  root.Write(devices + "good/type", "10\n");
  root.Write(devices + "good/format/event", "config:0-7\n");
  root.Write(devices + "good/format/later", "config3:0-7\n");
  root.Write(devices + "good/events/empty", "\n");
  const std::vector<Pmu> pmus = ReadPmus(root.root() + "/");
  ASSERT_THAT(Names(pmus), ElementsAre("good"));
  EXPECT_THAT(pmus[0].format, SizeIs(1));
  EXPECT_THAT(pmus[0].events, IsEmpty());
}

TEST(ReadPmus, AreNoneWhereThereIsNoSysfs) {
  fakes::ProcDir root;
  EXPECT_THAT(ReadPmus(root.root()), IsEmpty());
}

TEST(CorePmus, AreOnePerKindOfCore) {
  EXPECT_THAT(Names(CorePmus(PmusOf("intel"))), ElementsAre("cpu"));
  EXPECT_THAT(Names(CorePmus(PmusOf("amd"))), ElementsAre("cpu"));
  EXPECT_THAT(Names(CorePmus(PmusOf("hybrid"))), ElementsAre("cpu_atom", "cpu_core"));
  EXPECT_THAT(Names(CorePmus(PmusOf("arm64"))), ElementsAre("armv8_pmuv3_0"));
  EXPECT_THAT(Names(CorePmus(PmusOf("arm64-big-little"))),
              ElementsAre("armv8_cortex_a53", "armv8_cortex_a72"));
  EXPECT_THAT(CorePmus(PmusOf("no-pmu")), IsEmpty());
}

// A PMU of a cluster may say both: which CPUs it serves, and on which of them it is counted.
TEST(CorePmus, NoneCountsWholeCpusOnly) {
  fakes::ProcDir root;
  const std::string pmu = "sys/bus/event_source/devices/arm_dsu_0/";
  root.Write(pmu + "type", "12\n");
  root.Write(pmu + "cpus", "0-3\n");
  root.Write(pmu + "cpumask", "0\n");
  EXPECT_THAT(ReadPmus(root.root()), SizeIs(1));
  EXPECT_THAT(CorePmus(ReadPmus(root.root())), IsEmpty());
}

TEST(CorePmus, KnowTheirCpus) {
  EXPECT_THAT(PmuOf("hybrid", "cpu_atom").cpus, ElementsAre(16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(PmuOf("arm64-big-little", "armv8_cortex_a72").cpus, ElementsAre(4, 5));
}

}  // namespace
}  // namespace vcpulse::kvm

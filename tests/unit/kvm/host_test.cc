#include "kvm/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostFacts, TellTheNumaNodeOfEachCpu) {
  fakes::ProcDir host;
  host.Write("sys/devices/system/node/node0/cpulist", "0-1,4\n");
  host.Write("sys/devices/system/node/node2/cpulist", "2-3,6\n");
  host.Write("sys/devices/system/node/node3/cpulist", "\n");  // memory alone
  host.Write("sys/devices/system/node/online", "0,2-3\n");
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_nodes, ElementsAre(0, 0, 2, 2, 0, std::nullopt, 2));
}

// One node is no news.
TEST(HostFacts, OfOneNodeTellNone) {
  fakes::ProcDir host;
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_nodes, IsEmpty());
  host.Write("sys/devices/system/node/node0/cpulist", "0-63\n");
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_nodes, IsEmpty());
}

TEST(HostFacts, ADamagedListIsPassedOver) {
  fakes::ProcDir host;
  host.Write("sys/devices/system/node/node0/cpulist", "0\n");
  host.Write("sys/devices/system/node/node1/cpulist", "1,what\n");
  host.Write("sys/devices/system/node/nodeX/cpulist", "2\n");
  host.Write("sys/devices/system/node/node4/cpulist", "99999999\n");
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_nodes, IsEmpty());
}

TEST(HostFacts, TellTheCoreOfEachThread) {
  fakes::ProcDir host;
  const auto siblings = [&host](int cpu, const std::string& list) {
    host.Write(
        "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        list + "\n");
  };
  host.Write("sys/devices/system/cpu/online", "0-3,5\n");
  siblings(0, "0,3");
  siblings(1, "1");
  siblings(3, "0,3");
  siblings(4, "4,5");  // offline
  siblings(5, "what");
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_cores, ElementsAre(0, 1, std::nullopt, 0));
  siblings(0, "0");
  siblings(3, "3");
  EXPECT_THAT(ReadHostFacts(host.root()).cpu_cores, IsEmpty());  // no SMT is no news
}

}  // namespace
}  // namespace vcpulse::kvm

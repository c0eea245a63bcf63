#include "kvm/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vcpulse::kvm

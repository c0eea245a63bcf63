#include <gtest/gtest.h>

#include <optional>

#include "kvm/host.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::kvm {
namespace {

TEST(AvailableBytes, IsTheLessOfTheHostsAndTheControlGroups) {
  fakes::ProcDir host;
  EXPECT_EQ(AvailableBytes(host.root()), std::nullopt);
  host.Write("proc/meminfo",
             "MemTotal:       4000 kB\nMemFree:        10 kB\nMemAvailable:   3000 kB\n");
  EXPECT_EQ(AvailableBytes(host.root()), 3000u << 10);
  host.Write("sys/fs/cgroup/memory.max", "max\n");
  host.Write("sys/fs/cgroup/memory.current", "1024\n");
  EXPECT_EQ(AvailableBytes(host.root()), 3000u << 10);
  host.Write("sys/fs/cgroup/memory.max", "9000000\n");
  EXPECT_EQ(AvailableBytes(host.root()), 3000u << 10);
  host.Write("sys/fs/cgroup/memory.max", "4096\n");
  EXPECT_EQ(AvailableBytes(host.root()), 3072u);
  host.Write("sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(AvailableBytes(host.root()), 0u) << "already beyond its limit";
}

}  // namespace
}  // namespace vcpulse::kvm

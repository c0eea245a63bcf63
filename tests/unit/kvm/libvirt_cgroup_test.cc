#include "kvm/discovery/libvirt_cgroup.h"

#include <gtest/gtest.h>

namespace vcpulse::kvm {
namespace {

void ExpectCgroup(std::string_view text, const std::string& machine, std::optional<int> vcpu) {
  const LibvirtCgroup found = ParseLibvirtCgroup(text);
  EXPECT_EQ(found.machine, machine) << text;
  EXPECT_EQ(found.vcpu, vcpu) << text;
}

TEST(ParseLibvirtCgroup, Version2) {
  ExpectCgroup("0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt/vcpu11\n", "web", 11);
  ExpectCgroup("0::/machine.slice/machine-qemu\\x2d3\\x2dweb\\x2d2.scope/libvirt/emulator\n",
               "web-2", std::nullopt);
}

// Only some controllers have a group for each thread.
TEST(ParseLibvirtCgroup, Version1) {
  ExpectCgroup(
      "12:memory:/machine.slice/machine-qemu\\x2d3\\x2dweb.scope\n"
      "4:cpu,cpuacct:/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/vcpu0\n"
      "1:name=systemd:/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt\n"
      "0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope",
      "web", 0);
}

TEST(ParseLibvirtCgroup, WithoutSystemd) {
  ExpectCgroup("3:cpuset:/machine/qemu-3-web.libvirt-qemu/vcpu2\n", "web", 2);
  ExpectCgroup("3:cpuset:/machine/web-1.libvirt-qemu/vcpu2\n", "web-1", 2);
  ExpectCgroup("3:cpuset:/machine/qemu-a.libvirt-qemu\n", "qemu-a", std::nullopt);
}

TEST(ParseLibvirtCgroup, WhatIsNotLibvirtsIsNobodysVcpu) {
  for (const char* text :
       {"", "\n", "0::/", "0::/vcpu3\n", "0::/my.slice/vcpu0/x\n", "0::/machine.slice/vcpu0\n",
        "0::/machine.slice/machine-.scope/vcpu0\n", "0::/machine.slice/machine-x.scope/vcpu0\n",
        "machine-qemu\\x2d3\\x2dweb.scope/vcpu0", "0::/.libvirt-qemu/vcpu0\n"}) {
    ExpectCgroup(text, "", std::nullopt);
  }
  for (const char* component : {"vcpu", "vcpu-1", "vcpux", "vcpu99999999999", "vcpu1x"}) {
    ExpectCgroup("0::/machine/a.libvirt-qemu/" + std::string(component), "a", std::nullopt);
  }
}

// A name may hold anything that a unit name may.
TEST(ParseLibvirtCgroup, Escapes) {
  ExpectCgroup("0::/machine.slice/machine-qemu\\x2d1\\x2da\\x5fb.scope", "a_b", std::nullopt);
  ExpectCgroup("0::/machine.slice/machine-qemu\\x2d1\\x2da\\xzz\\x4.scope", "a\\xzz\\x4",
               std::nullopt);
}

}  // namespace
}  // namespace vcpulse::kvm

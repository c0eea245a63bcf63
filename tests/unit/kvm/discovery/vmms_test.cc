#include "kvm/discovery/vmms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace vcpulse::kvm {
namespace {

const Vmm& Find(std::string_view name) { return *std::ranges::find(Vmms(), name, &Vmm::name); }

// What the VMM of that name calls its VM.
std::string Name(std::string_view vmm, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "vmm");
  return Find(vmm).vm_name(arguments);
}

std::string NameOfVmm(std::string_view argument0, std::string_view process_name) {
  const Vmm* const vmm = VmmOf(argument0, process_name);
  return vmm == nullptr ? "" : std::string(vmm->name);
}

TEST(VmmOf, GoesByTheFileNameThenByTheProcessName) {
  EXPECT_EQ(NameOfVmm("/usr/bin/cloud-hypervisor", ""), "Cloud Hypervisor");
  EXPECT_EQ(NameOfVmm("vmm", "cloud-hyperviso"), "Cloud Hypervisor") << "comm is cut";
  EXPECT_EQ(NameOfVmm("firecracker-v1.7.0-x86_64", ""), "Firecracker");
  EXPECT_EQ(NameOfVmm("./crosvm", "x"), "crosvm");
  EXPECT_EQ(NameOfVmm("lkvm", ""), "kvmtool");
  EXPECT_EQ(NameOfVmm("/usr/bin/kvm", ""), "QEMU");
  EXPECT_EQ(NameOfVmm("guest=x", "qemu-system-x86"), "QEMU");
  EXPECT_EQ(NameOfVmm("/opt/crosvm/sh", "sh"), "");
  EXPECT_EQ(NameOfVmm("", ""), "");
}

TEST(VmNameOnCommandLine, Firecracker) {
  EXPECT_EQ(Name("Firecracker", {"--id", "vm-1", "--api-sock", "/x"}), "vm-1");
  EXPECT_EQ(Name("Firecracker", {"--api-sock", "/x", "--id=vm-2"}), "vm-2");
  EXPECT_EQ(Name("Firecracker", {"--idle", "vm-3"}), "");
  EXPECT_EQ(Name("Firecracker", {"--id"}), "");
}

TEST(VmNameOnCommandLine, CrosvmsNameGoesBeforeItsSocket) {
  EXPECT_EQ(Name("crosvm", {"run", "-s", "/run/a.sock", "--name", "web"}), "web");
  EXPECT_EQ(Name("crosvm", {"run", "--socket=/run/vm.d/penguin.sock"}), "penguin");
  EXPECT_EQ(Name("crosvm", {"run", "vmlinux"}), "");
}

TEST(VmNameOnCommandLine, Kvmtool) {
  EXPECT_EQ(Name("kvmtool", {"run", "-n", "debian"}), "debian");
  EXPECT_EQ(Name("kvmtool", {"run", "--name=debian"}), "debian");
}

// It has no name: the file of its API socket is as close as it comes.
TEST(VmNameOnCommandLine, CloudHypervisor) {
  EXPECT_EQ(Name("Cloud Hypervisor", {"--api-socket", "/run/ch/db.sock"}), "db");
  EXPECT_EQ(Name("Cloud Hypervisor", {"--api-socket", "path=/run/db-2,x=y"}), "db-2");
  EXPECT_EQ(Name("Cloud Hypervisor", {"--api-socket=path=db.v3.sock"}), "db.v3");
  EXPECT_EQ(Name("Cloud Hypervisor", {"--api-socket", "fd=3"}), "");
  EXPECT_EQ(Name("Cloud Hypervisor", {"--api-socket", "/run/.sock"}), ".sock");
  EXPECT_EQ(Name("Cloud Hypervisor", {}), "");
}

TEST(VmNameOnCommandLine, OthersHaveNone) {
  EXPECT_EQ(Name("QEMU", {"--id", "x", "--name", "y"}), "") << "as qemu_command_line.h has it";
  EXPECT_EQ(Find("Firecracker").vm_name({}), "");
}

TEST(ParseVcpuThreadName, KnowsTheVmms) {
  EXPECT_EQ(ParseVcpuThreadName("CPU 11/KVM\n"), (VcpuThreadName{11, Accelerator::kKvm}));
  EXPECT_EQ(ParseVcpuThreadName("CPU 0/TCG"), (VcpuThreadName{0, Accelerator::kTcg}));
  EXPECT_EQ(ParseVcpuThreadName("vcpu3"), (VcpuThreadName{3, Accelerator::kUnknown}));
  EXPECT_EQ(ParseVcpuThreadName("fc_vcpu 2"), (VcpuThreadName{2, Accelerator::kUnknown}));
  EXPECT_EQ(ParseVcpuThreadName("crosvm_vcpu14"), (VcpuThreadName{14, Accelerator::kUnknown}));
  EXPECT_EQ(ParseVcpuThreadName("kvm-vcpu-5"), (VcpuThreadName{5, Accelerator::kUnknown}));
}

// Among them the kernel's own thread in every VMM.
TEST(ParseVcpuThreadName, RefusesWorkers) {
  for (const char* name :
       {"kvm-nx-lpage-re", "qemu-system-x86", "worker", "CPU /KVM", "CPU -1/KVM", "CPU -0/KVM",
        "CPU 1/KVMX", "CPU 1/HVF", "vcpu", "vcpu1x", "CPU 1", ""}) {
    EXPECT_FALSE(ParseVcpuThreadName(name)) << name;
  }
}

}  // namespace
}  // namespace vcpulse::kvm

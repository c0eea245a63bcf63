#include "kvm/discovery/vmm_command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vcpulse::kvm {
namespace {

std::string Name(VmmProgram program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "vmm");
  return VmNameOnCommandLine(program, arguments);
}

TEST(VmmProgramOf, GoesByTheFileNameThenByTheProcessName) {
  EXPECT_EQ(VmmProgramOf("/usr/bin/cloud-hypervisor", ""), VmmProgram::kCloudHypervisor);
  EXPECT_EQ(VmmProgramOf("vmm", "cloud-hyperviso"), VmmProgram::kCloudHypervisor) << "comm is cut";
  EXPECT_EQ(VmmProgramOf("firecracker-v1.7.0-x86_64", ""), VmmProgram::kFirecracker);
  EXPECT_EQ(VmmProgramOf("./crosvm", "x"), VmmProgram::kCrosvm);
  EXPECT_EQ(VmmProgramOf("lkvm", ""), VmmProgram::kKvmtool);
  EXPECT_EQ(VmmProgramOf("/usr/bin/kvm", ""), VmmProgram::kQemu);
  EXPECT_EQ(VmmProgramOf("guest=x", "qemu-system-x86"), VmmProgram::kQemu);
  EXPECT_EQ(VmmProgramOf("/opt/crosvm/sh", "sh"), VmmProgram::kOther);
  EXPECT_EQ(VmmProgramOf("", ""), VmmProgram::kOther);
}

TEST(VmNameOnCommandLine, Firecracker) {
  EXPECT_EQ(Name(VmmProgram::kFirecracker, {"--id", "vm-1", "--api-sock", "/x"}), "vm-1");
  EXPECT_EQ(Name(VmmProgram::kFirecracker, {"--api-sock", "/x", "--id=vm-2"}), "vm-2");
  EXPECT_EQ(Name(VmmProgram::kFirecracker, {"--idle", "vm-3"}), "");
  EXPECT_EQ(Name(VmmProgram::kFirecracker, {"--id"}), "");
}

TEST(VmNameOnCommandLine, CrosvmsNameGoesBeforeItsSocket) {
  EXPECT_EQ(Name(VmmProgram::kCrosvm, {"run", "-s", "/run/a.sock", "--name", "web"}), "web");
  EXPECT_EQ(Name(VmmProgram::kCrosvm, {"run", "--socket=/run/vm.d/penguin.sock"}), "penguin");
  EXPECT_EQ(Name(VmmProgram::kCrosvm, {"run", "vmlinux"}), "");
}

TEST(VmNameOnCommandLine, Kvmtool) {
  EXPECT_EQ(Name(VmmProgram::kKvmtool, {"run", "-n", "debian"}), "debian");
  EXPECT_EQ(Name(VmmProgram::kKvmtool, {"run", "--name=debian"}), "debian");
}

// It has no name: the file of its API socket is as close as it comes.
TEST(VmNameOnCommandLine, CloudHypervisor) {
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {"--api-socket", "/run/ch/db.sock"}), "db");
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {"--api-socket", "path=/run/db-2,x=y"}), "db-2");
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {"--api-socket=path=db.v3.sock"}), "db.v3");
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {"--api-socket", "fd=3"}), "");
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {"--api-socket", "/run/.sock"}), ".sock");
  EXPECT_EQ(Name(VmmProgram::kCloudHypervisor, {}), "");
}

TEST(VmNameOnCommandLine, OthersHaveNone) {
  EXPECT_EQ(Name(VmmProgram::kOther, {"--id", "x", "--name", "y"}), "");
  EXPECT_EQ(VmNameOnCommandLine(VmmProgram::kFirecracker, {}), "");
}

}  // namespace
}  // namespace vcpulse::kvm

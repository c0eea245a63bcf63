// Each VMM and each way of running it, as small /proc trees (tests/data/hosts) that discovery reads
// through its root path.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kvm/discovery/discovery.h"
#include "tests/fakes/host_tree.h"
#include "tests/fakes/qmp_server.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "index:TID" of each vCPU.
std::vector<std::string> VcpusOf(const Vm& vm) {
  std::vector<std::string> vcpus;
  for (const Vcpu& vcpu : vm.vcpus) {
    vcpus.push_back(std::to_string(vcpu.index) + ":" + std::to_string(vcpu.tid));
  }
  return vcpus;
}

std::vector<std::string> NamesOf(const std::vector<Vm>& vms) {
  std::vector<std::string> names;
  for (const Vm& vm : vms) names.push_back(vm.name);
  return names;
}

void ExpectProven(const Vm& vm, FoundBy found_by) {
  EXPECT_EQ(vm.accelerator, Accelerator::kKvm);
  EXPECT_THAT(vm.vcpus, Each(Field(&Vcpu::found_by, found_by)));
  EXPECT_THAT(vm.vcpus, Each(Field(&Vcpu::proof, Proof::kFd)));
  EXPECT_THAT(vm.notes, IsEmpty());
  for (const Vcpu& vcpu : vm.vcpus) EXPECT_GT(vcpu.start_time_ticks, vm.start_time_ticks);
}

TEST(HostTrees, CloudHypervisor) {
  const std::vector<Vm> vms = Discovery(fakes::HostTree("cloud-hypervisor")).FindAll();
  EXPECT_THAT(NamesOf(vms), ElementsAre("db1", "cache-1")) << "of its API socket; of libvirt";
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:4110", "1:4111"));
  EXPECT_THAT(VcpusOf(vms[1]), ElementsAre("0:4210"));
  for (const Vm& vm : vms) ExpectProven(vm, FoundBy::kThreadName);
}

TEST(HostTrees, Firecracker) {
  const std::vector<Vm> vms = Discovery(fakes::HostTree("firecracker")).FindAll();
  ASSERT_THAT(NamesOf(vms), ElementsAre("fn-551e7604"));
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:5205", "1:5206"));
  ExpectProven(vms[0], FoundBy::kThreadName);
}

// Its device processes bear its command line and hold no VM.
TEST(HostTrees, Crosvm) {
  const std::vector<Vm> vms = Discovery(fakes::HostTree("crosvm")).FindAll();
  ASSERT_THAT(NamesOf(vms), ElementsAre("guest-a", "penguin"));
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:6310", "1:6311"));
  EXPECT_THAT(VcpusOf(vms[1]), ElementsAre("0:6410"));
  for (const Vm& vm : vms) ExpectProven(vm, FoundBy::kThreadName);
}

TEST(HostTrees, Kvmtool) {
  const std::vector<Vm> vms = Discovery(fakes::HostTree("kvmtool")).FindAll();
  ASSERT_THAT(NamesOf(vms), ElementsAre("debian"));
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:7510", "1:7511"));
  ExpectProven(vms[0], FoundBy::kThreadName);
}

// No thread names, no -name: libvirt's cgroups tell both.
TEST(HostTrees, LibvirtCgroupV1) {
  const Discovery discovery(fakes::HostTree("libvirt-cgroup-v1"));
  const std::vector<Vm> vms = discovery.FindAll();
  ASSERT_THAT(NamesOf(vms), ElementsAre("web-1", "old")) << "with and without systemd";
  EXPECT_EQ(vms[0].uuid, "5c7d0c7e-8b0a-4a35-9a3e-1f2d3c4b5a69");
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:8611", "1:8612"));
  EXPECT_THAT(VcpusOf(vms[1]), ElementsAre("0:8711"));
  for (const Vm& vm : vms) ExpectProven(vm, FoundBy::kCgroup);
  EXPECT_EQ(discovery.FindByName("web-1")->pid, 8600);
  EXPECT_EQ(*discovery.Rescan(vms[0]), vms[0]);
  Vm before = vms[0];
  before.vcpus.pop_back();  // as if vCPU 1 had been plugged since
  EXPECT_EQ(VcpusOf(*discovery.Rescan(before)), VcpusOf(vms[0]));
}

// Another user's VMs: descriptors may not be read, names and cgroups may.
TEST(HostTrees, LibvirtCgroupV2OfAnotherUser) {
  const std::vector<Vm> vms = Discovery(fakes::HostTree("libvirt-cgroup-v2")).FindAll();
  ASSERT_THAT(NamesOf(vms), ElementsAre("mail", "build"));
  EXPECT_THAT(VcpusOf(vms[0]), ElementsAre("0:8811", "2:8812"));
  EXPECT_THAT(vms[0].vcpus, Each(AllOf(Field(&Vcpu::found_by, FoundBy::kThreadName),
                                       Field(&Vcpu::proof, Proof::kName))));
  EXPECT_THAT(VcpusOf(vms[1]), ElementsAre("0:8911", "2:8912"));
  EXPECT_THAT(vms[1].vcpus, Each(AllOf(Field(&Vcpu::found_by, FoundBy::kCgroup),
                                       Field(&Vcpu::proof, Proof::kNone))));
  for (const Vm& vm : vms) {
    EXPECT_THAT(vm.notes, ElementsAre(AllOf(HasSubstr("unproven"), HasSubstr("CAP_SYS_PTRACE"))));
  }
}

// QMP tells the TIDs of QEMU's own PID namespace: 21 and 22. The host has a process 21 too.
TEST(HostTrees, ContainerByQmp) {
  fakes::QmpServer::Script script;
  script.answers["query-cpus-fast"] =
      R"({"return": [{"thread-id": 21, "cpu-index": 0}, {"thread-id": 22, "cpu-index": 1}]})"
      "\n";
  script.answers["query-name"] = "{\"return\": {\"name\": \"sandbox-1\"}}\n";
  fakes::QmpServer server(script);
  const auto vm =
      Discovery(fakes::HostTree("container")).FindByQmp(server.address(), absl::Seconds(20));
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->pid, 9900);
  EXPECT_EQ(vm->name, "sandbox-1");
  EXPECT_THAT(VcpusOf(*vm), ElementsAre("0:9904", "1:9905"));
  ExpectProven(*vm, FoundBy::kQmp);
}

}  // namespace
}  // namespace vcpulse::kvm

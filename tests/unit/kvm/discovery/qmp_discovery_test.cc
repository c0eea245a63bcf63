// The QMP route. The server runs in this process; its TIDs are 101 and 102.
#include "tests/fakes/qmp_server.h"
#include "tests/unit/kvm/discovery/discovery_fixture.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Script = fakes::QmpServer::Script;
constexpr absl::Duration kTimeout = absl::Seconds(20);

TEST_F(DiscoveryTest, QmpThroughTheOwnerOfTheSocket) {
  const pid_t self = ::getpid();
  tree_.AddProcess(self, "qemu-system-x86", {kQemu, "-readconfig", "x"},
                   {kVmLink, "anon_inode:kvm-vcpu:0", "anon_inode:kvm-vcpu:1"});
  tree_.AddThread(self, 101, "qemu-system-x86", 1002);
  tree_.AddThread(self, 102, "qemu-system-x86", 1003);
  fakes::QmpServer server(tree_.Path("q"), Script{});
  const auto vm = discovery_.FindByQmp(server.address(), kTimeout);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->pid, self);
  EXPECT_EQ(vm->name, "fake");
  EXPECT_EQ(vm->uuid, "");
  EXPECT_EQ(vm->qmp_address, server.address());
  EXPECT_THAT(vm->vcpus, ElementsAre(Vcpu{0, 0, 101, 1002, FoundBy::kQmp, Proof::kFd},
                                     Vcpu{1, 1, 102, 1003, FoundBy::kQmp, Proof::kFd}));
}

// A QEMU in a container: QMP tells 101, the host knows that thread as 5101.
TEST_F(DiscoveryTest, QmpTidsAreMappedFromTheContainer) {
  const pid_t self = ::getpid();
  tree_.AddProcess(self, "qemu-system-x86", {kQemu}, {kVmLink, "anon_inode:kvm-vcpu:0"});
  tree_.AddThread(self, 5101, "qemu-system-x86", 1002, 0, {5101, 101});
  tree_.AddThread(self, 5102, "qemu-system-x86", 1002, 0, {5102, 102});
  // A thread of the host's own that bears the container's number.
  tree_.AddProcess(101, "bash", {"bash"}, {});
  fakes::QmpServer server(tree_.Path("q"), Script{});
  const auto vm = discovery_.FindByQmp(server.address(), kTimeout);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_THAT(TidsOf(*vm), ElementsAre(5101, 5102));
}

// tcp names no owner: the VMM is found by its threads, and among containers with the same TIDs by
// its name.
TEST_F(DiscoveryTest, QmpOverTcpFindsTheVmmByThreadsAndName) {
  for (const pid_t pid : {1000, 2000, 3000}) {
    const std::string name = pid == 2000 ? "fake" : "other" + std::to_string(pid);
    // The first shows no name on its command line: it fits, but less well.
    const Arguments arguments = pid == 1000 ? Arguments{kQemu} : Arguments{kQemu, "-name", name};
    tree_.AddProcess(pid, "qemu-system-x86", arguments, {kVmLink});
    tree_.AddThread(pid, pid + 1, "qemu-system-x86", 1002, 0, {pid + 1, 101});
    tree_.AddThread(pid, pid + 2, "qemu-system-x86", 1002, 0, {pid + 2, 102});
  }
  fakes::QmpServer server(Script{});
  auto vm = discovery_.FindByQmp(server.address(), kTimeout);
  ASSERT_TRUE(vm.ok()) << vm.status();
  EXPECT_EQ(vm->pid, 2000);

  tree_.AddProcess(4000, "qemu-system-x86", {kQemu, "-name", "fake"}, {kVmLink});
  tree_.AddThread(4000, 4001, "qemu-system-x86", 1002, 0, {4001, 101});
  tree_.AddThread(4000, 4002, "qemu-system-x86", 1002, 0, {4002, 102});
  vm = discovery_.FindByQmp(server.address(), kTimeout);
  EXPECT_EQ(vm.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr("2000, 4000"), HasSubstr("--pid")));
}

TEST_F(DiscoveryTest, QmpOfAQemuThatIsNotHereIsNotFound) {
  AddQemu(300, {"-name", "fake"}, 1, true);  // the name alone does not make it the one
  fakes::QmpServer server(Script{});
  const auto vm = discovery_.FindByQmp(server.address(), kTimeout);
  EXPECT_EQ(vm.status().code(), Code::kNotFound);
  EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr(server.address()), HasSubstr("101")));
}

TEST_F(DiscoveryTest, QmpTellsTcg) {
  Script tcg;
  tcg.answers["query-kvm"] = "{\"return\": {\"enabled\": false, \"present\": true}}\n";
  fakes::QmpServer server(tree_.Path("q"), tcg);
  const auto vm = discovery_.FindByQmp(server.address(), kTimeout);
  EXPECT_EQ(vm.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(MessageOf(vm), AllOf(HasSubstr("TCG"), HasSubstr("'fake'")));
}

// One client at a time: a rescan leaves the socket alone until a vCPU may have been added.
TEST_F(DiscoveryTest, RescanAsksQmpOnlyWhereAVcpuMayHaveCome) {
  AddOwnQemu(2);
  fakes::QmpServer server(tree_.Path("q"), Script{});
  Vm vm = *discovery_.FindByQmp(server.address(), kTimeout);
  tree_.AddThread(::getpid(), 103, "qemu-system-x86", 1500);  // a worker
  const int asked = server.clients();
  EXPECT_EQ(*discovery_.Rescan(vm), vm);
  EXPECT_EQ(server.clients(), asked);
  vm.vcpus.pop_back();  // as if 102 had come later, with its descriptor
  vm.vcpu_descriptors = 1;
  const Vm now = *discovery_.Rescan(vm);
  EXPECT_EQ(server.clients(), asked + 1);
  EXPECT_THAT(TidsOf(now), ElementsAre(101, 102));
  EXPECT_EQ(now.vcpu_descriptors, 2);
}

// Unplugged, then plugged again: the vCPU takes the descriptor that was parked, so their number
// stays the same. A thread that came tells it; each is asked about once.
TEST_F(DiscoveryTest, RescanFindsAReplugByQmp) {
  AddOwnQemu(2);
  fakes::QmpServer server(tree_.Path("q"), Script{});
  Vm vm = *discovery_.FindByQmp(server.address(), kTimeout);
  vm.vcpus.pop_back();  // 102 was unplugged, and has come again since
  const int asked = server.clients();
  EXPECT_THAT(TidsOf(*discovery_.Rescan(vm)), ElementsAre(101, 102));
  EXPECT_EQ(server.clients(), asked + 1);

  tree_.AddLink(::getpid(), 9, "anon_inode:kvm-vcpu:2");  // one that stays parked
  vm = *discovery_.FindByQmp(server.address(), kTimeout);
  tree_.AddThread(::getpid(), 103, "qemu-system-x86", 1500);  // a worker
  const int before = server.clients();
  vm = *discovery_.Rescan(vm);
  vm = *discovery_.Rescan(vm);
  EXPECT_EQ(server.clients(), before + 1);
  tree_.AddThread(::getpid(), 104, "qemu-system-x86", 1600);
  vm = *discovery_.Rescan(vm);
  EXPECT_EQ(server.clients(), before + 2);
}

}  // namespace
}  // namespace vcpulse::kvm

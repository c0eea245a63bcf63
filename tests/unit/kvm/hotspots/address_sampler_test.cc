#include "kvm/hotspots/address_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/proc_dir.h"
#include "tests/fakes/qmp_server.h"

namespace vcpulse::kvm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class AddressSamplerTest : public ::testing::Test {
 protected:
  AddressSamplerTest() {
    proc_.AddProcess(10, "qemu", {"qemu"}, {});
    vm_.pid = 10;
    vm_.name = "web";
    for (int i = 0; i < 2; ++i) vm_.vcpus.push_back({.index = i, .tid = 101 + i});
    perf_.refused[{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}] = ENOENT;
  }

  auto Open(std::optional<AddressSource> source = std::nullopt) {
    return AddressSampler::Open(perf_, vm_, {.root = proc_.root(), .source = source});
  }

  fakes::FakePerfEvents perf_;
  fakes::ProcDir proc_;
  Vm vm_;
};

TEST_F(AddressSamplerTest, SaysWhyEachSourceIsRefused) {
  const auto sampler = Open();
  ASSERT_FALSE(sampler.ok());
  EXPECT_THAT(std::string(sampler.status().message()),
              AllOf(HasSubstr("VM web (PID 10) cannot be sampled: cycles: no 'cycles' event"),
                    HasSubstr("; kvm-exit: the format of kvm:kvm_exit cannot be read"),
                    HasSubstr("; qmp: its QMP address is not known (--qmp)")));
  const auto one = Open(AddressSource::kQmp);
  EXPECT_THAT(std::string(one.status().message()), Not(HasSubstr("kvm-exit")));
}

// It stops the vCPUs: a recording takes it where it is named alone.
TEST_F(AddressSamplerTest, QmpCanBeLeftOut) {
  vm_.qmp_address = "unix:/nowhere";
  EXPECT_TRUE(AddressSampler::Open(perf_, vm_, {.root = proc_.root()}).ok());
  const auto without = AddressSampler::Open(perf_, vm_, {.root = proc_.root(), .qmp_too = false});
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(std::string(without.status().message()), Not(HasSubstr("qmp")));
  EXPECT_TRUE(
      AddressSampler::Open(perf_, vm_,
                           {.root = proc_.root(), .source = AddressSource::kQmp, .qmp_too = false})
          .ok());
}

TEST_F(AddressSamplerTest, ATracepointOfOtherFieldsIsNotGuessedAt) {
  proc_.Write("sys/kernel/tracing/events/kvm/kvm_exit/format",
              "name: kvm_exit\nID: 9\nformat:\n\tfield:u64 what;\toffset:8;\tsize:8;\tsigned:0;\n");
  EXPECT_THAT(std::string(Open(AddressSource::kKvmExit).status().message()),
              HasSubstr("other fields on this kernel than are known"));
}

TEST_F(AddressSamplerTest, WithAMediatedVpmuCyclesAreNotOpened) {
  proc_.Write("sys/module/kvm_intel/parameters/enable_mediated_pmu", "Y\n");
  perf_.refused.clear();
  const auto sampler = Open(AddressSource::kCycles);
  ASSERT_FALSE(sampler.ok());
  EXPECT_THAT(std::string(sampler.status().message()), HasSubstr("mediated"));
  EXPECT_THAT(perf_.opened, IsEmpty());
}

// Guest cycles alone, by interrupts that take nothing from a guest's own PEBS.
TEST_F(AddressSamplerTest, CyclesAreTheGuestsAtAFrequency) {
  perf_.refused.clear();
  EXPECT_FALSE(Open(AddressSource::kCycles).ok());  // a fake has no ring
  ASSERT_FALSE(perf_.opened.empty());
  const perf_event_attr& attr = perf_.opened.front();
  EXPECT_EQ(attr.exclude_host, 1u);
  EXPECT_EQ(attr.precise_ip, 0u);
  EXPECT_EQ(attr.freq, 1u);
  EXPECT_EQ(attr.sample_freq, 499u);
  EXPECT_EQ(attr.sample_type, kIpSampleType);
  EXPECT_EQ(attr.disabled, 1u);
}

TEST_F(AddressSamplerTest, RegistersGoToTheirVcpus) {
  fakes::QmpServer::Script script;
  script.answers["human-monitor-command"] =
      "{\"return\": \"RIP=0000000000001234 RFL=00000002 [-------] CPL=0 II=0\\r\\n\"}\n";
  fakes::QmpServer server(proc_.Path("q"), script);
  vm_.qmp_address = server.address();
  std::swap(vm_.vcpus[0], vm_.vcpus[1]);
  vm_.vcpus.push_back({.index = 5, .tid = 106});  // QEMU does not name it
  const auto sampler = Open();
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  EXPECT_EQ((*sampler)->source(), AddressSource::kQmp);
  ASSERT_TRUE((*sampler)->Start().ok());
  ASSERT_TRUE((*sampler)->Collect().ok());
  ASSERT_TRUE((*sampler)->Collect().ok());  // too soon: nothing is asked
  ASSERT_TRUE((*sampler)->Stop().ok());
  EXPECT_EQ(server.clients(), 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT((*sampler)->counts()[i].counts,
                ElementsAre(Pair(GuestAddress{0x1234, GuestMode::kKernel}, 1)));
  }
  EXPECT_THAT((*sampler)->counts()[2].counts, IsEmpty());
}

// Which of two looks at registers a stack was read between.
class StackLookTest : public AddressSamplerTest {
 protected:
  static constexpr char kMemory[] =
      R"({"return": "ffffc90000001f00: 0x01 0x02\r\nffffc90000001f02: Cannot access memory\r\n"})"
      "\n";

  static std::string Registers(const std::string& stack, const std::string& more = "CPL=0 HLT=0") {
    return R"({"return": "RBP=ffffc90000002000 RSP=)" + stack + R"(\r\nRIP=ffffffff81000010 )" +
           more +
           R"(\r\n"})"
           "\n";
  }

  // The looks of the only vCPU after one turn with these answers.
  std::vector<StackLook> Look(std::vector<std::string> registers, const char* memory = kMemory) {
    fakes::QmpServer::Script script;
    script.answers["query-cpus-fast"] =
        R"({"return": [{"thread-id": 101, "props": {}, "cpu-index": 0}]})"
        "\n";
    script.in_turn["info registers"] = std::move(registers);
    script.answers["x /"] = memory;
    fakes::QmpServer server(proc_.Path("q"), script);
    vm_.qmp_address = server.address();
    vm_.vcpus.resize(1);
    const auto sampler = AddressSampler::Open(
        perf_, vm_, {.root = proc_.root(), .source = AddressSource::kQmp, .stacks = true});
    EXPECT_TRUE(sampler.ok() && (*sampler)->Collect().ok());
    EXPECT_EQ((*sampler)->counts()[0].Samples() + (*sampler)->counts()[0].halted, 1u);
    return (*sampler)->looks()[0];
  }
};

TEST_F(StackLookTest, IsKeptWhereTheStackStands) {
  const auto looks = Look({Registers("ffffc90000001f00")});
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks[0].registers.stack, 0xffffc90000001f00u);
  EXPECT_THAT(looks[0].memory, ElementsAre(1, 2));
}

TEST_F(StackLookTest, IsNotKeptWhereItMovedMeanwhile) {
  EXPECT_THAT(Look({Registers("ffffc90000001f00"), Registers("ffffc90000001ef8")}), IsEmpty());
}

// A loop's counter may be in it.
TEST_F(StackLookTest, RbpIsNoPlaceOnX86) {
  std::string other = Registers("ffffc90000001f00");
  other.replace(other.find("RBP=ffffc90000002000"), 20, "RBP=0000000000000007");
  EXPECT_EQ(Look({Registers("ffffc90000001f00"), other}).size(), 1u);
}

// The frame record would be another one.
TEST_F(StackLookTest, X29IsAPlaceOnArm) {
  const auto arm = [](const char* frame) {
    return std::string(R"({"return": " PC=ffff800008c0a2ec X29=)") + frame +
           R"( X30=ffff800008c0a000 SP=ffff80000a00be90\nPSTATE=60000005 -ZC- EL1h\n"})"
           "\n";
  };
  EXPECT_THAT(Look({arm("ffff80000a00be90"), arm("ffff80000a00bea0")}), IsEmpty());
}

TEST_F(StackLookTest, IsKeptOnArmToo) {
  EXPECT_EQ(
      Look({R"({"return": " PC=ffff800008c0a2ec X29=ffff80000a00be90 X30=0 SP=ffff80000a00be90)"
            R"(\nPSTATE=60000005 -ZC- EL1h\n"})"
            "\n"})
          .size(),
      1u);
}

// What the registers said stands.
TEST_F(StackLookTest, IsNotKeptWhereQemuRefusesIt) {
  EXPECT_THAT(Look({Registers("ffffc90000001f00")}, "{\"error\": {\"class\": \"GenericError\"}}\n"),
              IsEmpty());
}

TEST_F(StackLookTest, IsOfTheKernelAlone) {
  EXPECT_THAT(Look({Registers("00007ffe00001f00", "CPL=3 HLT=0")}), IsEmpty());
}

TEST_F(StackLookTest, IsOfRunningCodeAlone) {
  EXPECT_THAT(Look({Registers("ffffc90000001f00", "CPL=0 HLT=1")}), IsEmpty());
}

TEST_F(AddressSamplerTest, ARefusalOfQemuIsTold) {
  fakes::QmpServer::Script script;
  script.answers["human-monitor-command"] = "{\"error\": {\"class\": \"CommandNotFound\"}}\n";
  fakes::QmpServer server(proc_.Path("q"), script);
  vm_.qmp_address = server.address();
  const auto sampler = Open(AddressSource::kQmp);
  ASSERT_TRUE(sampler.ok());
  EXPECT_THAT(std::string((*sampler)->Collect().message()),
              HasSubstr("human-monitor-command is refused"));
}

TEST(AddressSource, HasNames) {
  for (const AddressSource source :
       {AddressSource::kCycles, AddressSource::kKvmExit, AddressSource::kQmp}) {
    EXPECT_EQ(FindAddressSource(ToString(source)), source);
  }
  EXPECT_EQ(FindAddressSource("auto"), std::nullopt);
}

TEST(ModeOfAddress, TheUpperHalfIsTheKernels) {
  EXPECT_EQ(ModeOfAddress(0xffff800008000000), GuestMode::kKernel);
  EXPECT_EQ(ModeOfAddress(0x00007fffffffffff), GuestMode::kUnknown);
}

}  // namespace
}  // namespace vcpulse::kvm

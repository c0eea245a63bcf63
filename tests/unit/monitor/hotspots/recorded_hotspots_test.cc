#include "monitor/hotspots/recorded_hotspots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vcpulse::hotspots {
namespace {

using kvm::GuestMode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

timeline::Entry SetOf(uint32_t vm, const std::string& name) {
  v1::VcpuSet set;
  set.set_vm(vm);
  set.mutable_instance()->set_name(name);
  set.mutable_instance()->set_pid(70 + vm);
  return {.sequence = 1, .record = set};
}

v1::HotAddresses Window(uint32_t vm, uint32_t vcpu, uint64_t address, uint64_t samples) {
  v1::HotAddresses hot;
  hot.set_vm(vm);
  hot.set_vcpu_index(vcpu);
  hot.set_begin_mono_ns(1'000'000'000);
  hot.set_mono_ns(1'500'000'000);
  hot.set_trigger(v1::HotAddresses::TRIGGER_SPINNING);
  hot.set_source("cycles");
  hot.add_addresses(address);
  hot.add_samples(samples);
  hot.add_modes(v1::GUEST_MODE_KERNEL);
  return hot;
}

GuestKernels TwoKernels() {
  GuestKernels symbols;
  symbols.all.symbols = *Symbols::Parse("1000 T spin\n2000 T end\n");
  symbols.own["db"].symbols = *Symbols::Parse("1000 T lock\n2000 T end\n");
  return symbols;
}

TEST(RecordedHotspots, WindowsOfAVcpuAddUp) {
  RecordedHotspots recorded;
  recorded.Add(SetOf(1, "web"));
  recorded.Add({.sequence = 2, .record = Window(1, 3, 0x1000, 60)});
  v1::HotAddresses starved = Window(1, 3, 0x1010, 30);
  starved.set_trigger(v1::HotAddresses::TRIGGER_STARVED);
  starved.set_further_samples(10);
  starved.set_lost(2);
  starved.set_halted(1);
  recorded.Add({.sequence = 3, .record = starved});
  const auto all = recorded.All(TwoKernels());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].vm, "web");
  EXPECT_EQ(all[0].pid, 71);
  EXPECT_EQ(all[0].vcpu, 3);
  EXPECT_DOUBLE_EQ(all[0].seconds, 1.0);
  EXPECT_EQ(all[0].samples, 100u);
  EXPECT_EQ(all[0].lost, 2u);
  EXPECT_EQ(all[0].halted, 1u);
  EXPECT_EQ(all[0].after_spinning, 1u);
  EXPECT_EQ(all[0].after_starved, 1u);
  EXPECT_THAT(all[0].spots, ElementsAre(Spot{"spin", GuestMode::kKernel, true, 90, 0x1000}));
  EXPECT_EQ(TextOf(all, 5),
            "VM web (PID 71) vCPU 3: 100 samples in 1.0 s by cycles, 2 windows after spinning or "
            "starvation, 2 lost, 1 while halted\n"
            "   90.0 %      90  kernel  spin\n"
            "   10.0 %      10          places that were left out\n");
  EXPECT_EQ(SharesOf(all[0], 5), "90.0 % spin");
  EXPECT_EQ(FoldedOf(all),
            "web;vCPU 3;kernel;spin 90\nweb;vCPU 3;?;places that were left out 10\n");
}

// Each source has a row of its own; a report takes the one that saw most.
TEST(RecordedHotspots, SourcesAreToldApart) {
  RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = Window(1, 3, 0x1000, 60)});
  v1::HotAddresses other = Window(1, 3, 0x2000, 70);
  other.set_source("kvm-exit");
  other.set_refused("cycles: no counter is free");
  recorded.Add({.sequence = 2, .record = other});
  EXPECT_THAT(recorded.All({}), SizeIs(2));
  EXPECT_THAT(recorded.All({}, 2), IsEmpty());
  const auto most = recorded.Of(1, 3, {});
  EXPECT_EQ(most->source, kvm::AddressSource::kKvmExit);
  EXPECT_EQ(most->samples, 70u);
  EXPECT_EQ(most->refused, "cycles: no counter is free");
}

// What a starved vCPU ran says nothing of how it spun.
TEST(RecordedHotspots, IdlePollingIsOfTheSamplesAfterSpinning) {
  GuestKernels symbols;
  symbols.all.symbols = *Symbols::Parse("1000 T poll_idle\n2000 T work\n3000 T end\n");
  RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = Window(1, 0, 0x1000, 100)});
  v1::HotAddresses starved = Window(1, 0, 0x2000, 900);
  starved.set_trigger(v1::HotAddresses::TRIGGER_STARVED);
  recorded.Add({.sequence = 2, .record = starved});
  EXPECT_EQ(recorded.Of(1, 0, symbols)->idle_share, 1.0);
}

// Two processes that have the same addresses, one after the other: each window by its own code.
TEST(RecordedHotspots, EachWindowIsJudgedByItsOwnCode) {
  const auto with_code = [](const std::string& bytes, uint64_t samples) {
    v1::HotAddresses hot = Window(1, 0, 0x401000, samples);
    hot.set_modes(0, v1::GUEST_MODE_USER);
    v1::GuestCode& code = *hot.add_code();
    code.set_address(0x401000);
    code.set_bytes(bytes);
    code.set_isa(v1::GuestCode::ISA_X86);
    return hot;
  };
  RecordedHotspots recorded;
  recorded.Add({.sequence = 1, .record = with_code("\xf3\x90\xeb\xfc", 60)});
  recorded.Add({.sequence = 2, .record = with_code("\x90\x90\xeb\xfc", 30)});
  v1::HotAddresses unknown = Window(1, 0, 0x402000, 5);
  unknown.set_further_samples(5);
  recorded.Add({.sequence = 3, .record = unknown});
  const auto vcpu = recorded.Of(1, 0, {});
  EXPECT_EQ(vcpu->wait_share, 0.6);
  EXPECT_EQ(WhyItSpins(*vcpu),
            "waits in place: at least 60.0 % after spinning in a loop with PAUSE, WFE or YIELD");
}

TEST(RecordedHotspots, WhyNoCodeWasReadIsKept) {
  RecordedHotspots recorded;
  v1::HotAddresses hot = Window(1, 0, 0x1000, 60);
  hot.set_code_refused("QMP did not answer");
  recorded.Add({.sequence = 1, .record = hot});
  recorded.Add({.sequence = 2, .record = Window(1, 0, 0x1000, 60)});
  EXPECT_EQ(recorded.Of(1, 0, {})->code_refused, "QMP did not answer");
  EXPECT_THAT(TextOf(recorded.All({}), 5),
              testing::HasSubstr("  its code was not read: QMP did not answer\n"));
}

// Beyond 16,384 places those with one sample go, and stay counted.
TEST(RecordedHotspots, ManyPlacesAreBounded) {
  RecordedHotspots recorded;
  for (uint64_t i = 0; i < 17'000; ++i) {
    recorded.Add({.sequence = i + 1, .record = Window(1, 0, 0x10000 + i, i % 4 == 0 ? 2 : 1)});
  }
  recorded.Add({.sequence = 20'000, .record = Window(1, 0, 0x90000, 500)});
  const auto vcpu = recorded.Of(1, 0, {});
  EXPECT_EQ(vcpu->samples, 17'000u + 4'250 + 500);
  EXPECT_LE(vcpu->spots.size(), size_t{1} << 14);
  EXPECT_EQ(vcpu->spots.front(), (Spot{"0x90000", GuestMode::kKernel, false, 500, 0x90000}));
  EXPECT_GE(vcpu->spots.size(), 4'251u);
}

TEST(RecordedHotspots, EachVmHasSymbolsOfItsOwn) {
  RecordedHotspots recorded;
  for (const uint32_t vm : {1U, 2U}) {
    recorded.Add(SetOf(vm, vm == 1 ? "web" : "db"));
    recorded.Add({.sequence = 2, .record = Window(vm, 0, 0x1000, 1)});
  }
  EXPECT_EQ(recorded.Of(1, 0, TwoKernels())->spots[0].name, "spin");
  EXPECT_EQ(recorded.Of(2, 0, TwoKernels())->spots[0].name, "lock");
  EXPECT_EQ(recorded.Of(2, 0, {})->spots[0].name, "0x1000");
  EXPECT_FALSE(recorded.Of(2, 1, {}).has_value());
}

TEST(RecordedHotspots, ARefusalIsNoWindow) {
  RecordedHotspots recorded;
  recorded.Add(SetOf(1, "web"));
  EXPECT_EQ(recorded.Refused(1), std::nullopt);
  v1::HotAddresses refused = Window(1, 0, 0x1000, 1);
  refused.set_source("");
  refused.set_refused("no PMU");
  recorded.Add({.sequence = 2, .record = refused});
  refused.set_source("of a later release");
  recorded.Add({.sequence = 3, .record = refused});
  EXPECT_THAT(recorded.All({}), IsEmpty());
  EXPECT_EQ(recorded.Refused(1), "no PMU");
  EXPECT_EQ(recorded.Refused(2), std::nullopt);
  recorded.Add({.sequence = 4, .record = Window(1, 1, 0x1000, 1)});
  EXPECT_EQ(recorded.Refused(1), std::nullopt);  // another vCPU was sampled
}

// Lists of other lengths, no samples, numbers that no window has.
TEST(RecordedHotspots, ADamagedRecordIsTakenAsFarAsItGoes) {
  RecordedHotspots recorded;
  v1::HotAddresses hot = Window(1, 0, 0x1000, UINT64_MAX);
  hot.add_addresses(0x2000);
  hot.add_samples(0);
  hot.add_modes(v1::GUEST_MODE_UNSPECIFIED);
  hot.add_addresses(0x3000);
  hot.set_begin_mono_ns(INT64_MIN);
  hot.set_mono_ns(INT64_MAX);
  recorded.Add({.sequence = 1, .record = hot});
  recorded.Add({.sequence = 2, .record = hot});
  const auto vcpu = recorded.Of(1, 0, {});
  ASSERT_TRUE(vcpu.has_value());
  EXPECT_THAT(vcpu->spots,
              ElementsAre(Spot{"0x1000", GuestMode::kKernel, false, uint64_t{1} << 33, 0x1000}));
  EXPECT_EQ(vcpu->samples, uint64_t{1} << 33);
  v1::HotAddresses none = Window(2, 0, 0x1000, 0);
  recorded.Add({.sequence = 3, .record = none});
  EXPECT_THAT(recorded.Of(2, 0, {})->spots, IsEmpty());
  EXPECT_EQ(SharesOf(*recorded.Of(2, 0, {}), 3), "");
}

}  // namespace
}  // namespace vcpulse::hotspots

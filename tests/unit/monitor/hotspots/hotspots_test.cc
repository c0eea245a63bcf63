#include "monitor/hotspots/hotspots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstring>

namespace vcpulse::hotspots {
namespace {

using kvm::GuestMode;
using ::testing::ElementsAre;

constexpr uint64_t kKernel = 0xffff800000000000;

Symbols SomeSymbols() { return *Symbols::Parse("1000 T spin\n2000 T work\n3000 T end\n"); }

kvm::AddressCounts SomeCounts() {
  kvm::AddressCounts counts;
  counts.counts = {{{0x1000, GuestMode::kKernel}, 60},
                   {{0x1004, GuestMode::kKernel}, 30},
                   {{0x2000, GuestMode::kKernel}, 5},
                   {{0x1000, GuestMode::kUser}, 3},  // some process's, not the kernel's `spin`
                   {{0x9000, GuestMode::kUnknown}, 2}};
  return counts;
}

VcpuHotspots SomeHotspots() {
  return {.vm = "web;1",
          .pid = 77,
          .vcpu = 3,
          .source = kvm::AddressSource::kCycles,
          .seconds = 1.25,
          .samples = SomeCounts().Samples(),
          .lost = 4,
          .spots = SpotsOf(SomeCounts(), SomeSymbols())};
}

TEST(SpotsOf, AddsTheAddressesOfAFunction) {
  EXPECT_THAT(SpotsOf(SomeCounts(), SomeSymbols()),
              ElementsAre(Spot{"spin", GuestMode::kKernel, true, 90, 0x1000},
                          Spot{"work", GuestMode::kKernel, true, 5, 0x2000},
                          Spot{"0x1000", GuestMode::kUser, false, 3, 0x1000},
                          Spot{"0x9000", GuestMode::kUnknown, false, 2, 0x9000}));
  EXPECT_EQ(SpotsOf(SomeCounts(), Symbols()).size(), 5u);
  EXPECT_EQ(SomeCounts().Samples(), 100u);
}

TEST(IdleShare, IsOfNamedPlacesInTheIdleLoop) {
  EXPECT_TRUE(IsIdleLoop("poll_idle"));
  EXPECT_FALSE(IsIdleLoop("poll_idle_but_not"));
  EXPECT_FALSE(IsIdleLoop(""));
  std::vector<Spot> spots = SomeHotspots().spots;
  EXPECT_EQ(IdleShare(spots, 100), 0);
  spots[1].name = "default_idle";
  EXPECT_EQ(IdleShare(spots, 100), 0.05);
  EXPECT_EQ(IdleShare(spots, 200), 0.025);  // others were left out
  for (Spot& spot : spots) spot.named = false;
  EXPECT_EQ(IdleShare(spots, 100), std::nullopt);  // without symbols it is not known
  EXPECT_EQ(IdleShare({}, 0), std::nullopt);
}

TEST(HotspotsText, HasTheLargestSharesAndTheRest) {
  EXPECT_EQ(TextOf({SomeHotspots()}, 2),
            "VM web;1 (PID 77) vCPU 3: 100 samples in 1.2 s by cycles, 4 lost\n"
            "   90.0 %      90  kernel  spin\n"
            "    5.0 %       5  kernel  work\n"
            "    5.0 %       5          2 more places (--top N)\n");
  EXPECT_EQ(TextOf({SomeHotspots()}, 4).find("more places"), std::string::npos);
  EXPECT_EQ(TextOf({VcpuHotspots{.vm = "a", .pid = 1}}, 2),
            "VM a (PID 1) vCPU 0: 0 samples in 0.0 s by cycles\n");
}

TEST(HotspotsJson, HasAllPlaces) {
  const auto json = boost::json::parse(JsonOf({SomeHotspots()}));
  const auto& vcpu = json.at("vcpus").at(0);
  EXPECT_EQ(vcpu.at("vcpu"), 3);
  EXPECT_EQ(vcpu.at("source"), "cycles");
  EXPECT_EQ(vcpu.at("samples"), 100);
  EXPECT_EQ(vcpu.at("lost"), 4);
  ASSERT_EQ(vcpu.at("spots").as_array().size(), 4u);
  EXPECT_EQ(vcpu.at("spots").at(0).at("name"), "spin");
  EXPECT_EQ(vcpu.at("spots").at(0).at("named"), true);
  EXPECT_EQ(vcpu.at("spots").at(0).at("share").to_number<double>(), 0.9);
  EXPECT_EQ(vcpu.at("spots").at(2).at("mode"), "user");
  EXPECT_TRUE(vcpu.at("spots").at(3).at("mode").is_null());
}

TEST(HotspotsFolded, AreStacksOfOneFrame) {
  EXPECT_EQ(FoldedOf({SomeHotspots()}),
            "web_1;vCPU 3;kernel;spin 90\n"
            "web_1;vCPU 3;kernel;work 5\n"
            "web_1;vCPU 3;user;0x1000 3\n"
            "web_1;vCPU 3;?;0x9000 2\n");
}

// Two looks at `spin`, once called by `work`.
VcpuHotspots WithCallers() {
  kvm::StackLook look{.registers = {.isa = kvm::Isa::kArm64,
                                    .at = {.address = kKernel + 0x1000, .mode = GuestMode::kKernel},
                                    .stack = kKernel + 0x9000,
                                    .frame = kKernel + 0x9000}};
  look.memory.resize(16);
  const uint64_t in_work = kKernel + 0x2004;
  std::memcpy(look.memory.data() + 8, &in_work, sizeof(in_work));
  const GuestKernel kernel{.symbols = Symbols::Of({{kKernel + 0x1000, true, "spin"},
                                                   {kKernel + 0x2000, true, "work"},
                                                   {kKernel + 0x3000, true, "end"}})};
  kvm::AddressCounts counts;
  counts.counts = {{look.registers.at, 3}};
  kvm::StackLook unknown = look;
  unknown.memory.clear();
  return {.vm = "web",
          .source = kvm::AddressSource::kQmp,
          .samples = counts.Samples(),
          .spots = SpotsOf(counts, kernel.symbols),
          .stacks = StacksOf({look, unknown, look}, kernel)};
}

TEST(StacksOf, AreOfThoseWhoseCallersAreTold) {
  const VcpuHotspots vcpu = WithCallers();
  ASSERT_EQ(vcpu.stacks->size(), 1u);
  const Stack& stack = vcpu.stacks->front();
  EXPECT_EQ(stack.samples, 2u);
  EXPECT_THAT(stack.frames, ElementsAre(Stack::Frame{"spin", true, kKernel + 0x1000},
                                        Stack::Frame{"work", true, kKernel + 0x2000}));
}

TEST(StacksOf, AreInEachFormat) {
  const VcpuHotspots vcpu = WithCallers();
  EXPECT_EQ(FoldedOf({vcpu}), "web;vCPU 0;kernel;work;spin 2\nweb;vCPU 0;kernel;spin 1\n");
  EXPECT_THAT(TextOf({vcpu}, 10), ::testing::HasSubstr("  callers, known of 2 of 3 samples\n"
                                                       "   66.7 %       2  kernel  spin < work\n"));
  const auto json = boost::json::parse(JsonOf({vcpu}));
  const auto& stack = json.at("vcpus").at(0).at("stacks").at(0);
  EXPECT_EQ(stack.at("samples"), 2);
  EXPECT_EQ(stack.at("frames").at(1).at("name"), "work");
  EXPECT_EQ(stack.at("frames").at(1).at("address"), "0xffff800000002000");
  EXPECT_TRUE(
      boost::json::parse(JsonOf({SomeHotspots()})).at("vcpus").at(0).at("stacks").is_null());
}

}  // namespace
}  // namespace vcpulse::hotspots

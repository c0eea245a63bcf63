#include "kvm/statistics/kvm_stats_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/fakes/kvm_stats_bytes.h"

namespace vcpulse::kvm {
namespace {

constexpr uint32_t kInstant = 1;
constexpr uint32_t kLogHistogram = 4;

fakes::KvmStatsBytes Stats() {
  return {.values = {{"exits", {41}},
                     {"halt_wait_hist", {1, 2, 3}, kLogHistogram},
                     {"blocking", {1}, kInstant},
                     {"halt_exits", {7}}}};
}

TEST(KvmStatsLayout, HasTheCumulativeValuesAlone) {
  const auto bytes = Stats().Bytes();
  const auto layout = ParseKvmStatsLayout(bytes);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->id, "kvm-10/vcpu-0");
  ASSERT_EQ(layout->values.size(), 2u);
  const auto value = [&](size_t i) {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data() + layout->values[i].offset, sizeof(number));
    return std::pair(layout->values[i].name, number);
  };
  EXPECT_EQ(value(0), std::pair(std::string("exits"), uint64_t{41}));
  EXPECT_EQ(value(1), std::pair(std::string("halt_exits"), uint64_t{7}));
}

TEST(KvmStatsLayout, EveryCutIsRefused) {
  const auto bytes = Stats().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = ParseKvmStatsLayout(std::span(bytes).first(size));
    EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST(KvmStatsLayout, CountsBeyondAnyKernelAreRefused) {
  for (const size_t field : {4, 8, 12, 16, 20}) {  // all of the header that says sizes and places
    auto bytes = Stats().Bytes();
    const uint32_t huge = 0xfffffff0;
    std::memcpy(bytes.data() + field, &huge, sizeof(huge));
    EXPECT_FALSE(ParseKvmStatsLayout(bytes).ok()) << field;
  }
}

TEST(VcpuIdOf, IsTheNumberOfAVcpu) {
  EXPECT_EQ(VcpuIdOf("kvm-4711/vcpu-12"), 12);
  for (const char* other : {"kvm-4711", "kvm-4711/vcpu-", "kvm-4711/vcpu--1", "vcpu-1", "",
                            "kvm-4711/vcpu-1x", "x/vcpu-1"}) {
    EXPECT_EQ(VcpuIdOf(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace vcpulse::kvm

#pragma once

// Samplers that a test drives, and a fixture of ticks for windows of them.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kvm/hotspots/address_sampler.h"
#include "monitor/recorder/triggered_windows.h"
#include "monitor/recorder/windows.h"

namespace vcpulse::recorder {

inline constexpr int64_t kMs_ns = 1'000'000;
inline constexpr TriggeredWindows::Epoch kEpoch = {1, 2};

inline int64_t g_now_ns = 0;

// What the samplers of a test were told.
struct Told {
  std::vector<int> opened;  // indexes of vCPUs
  int started = 0;
  int stopped = 0;
  int closed = 0;
  absl::Status refused;
  absl::Status start;
  absl::Status collect;
  kvm::AddressSource source = kvm::AddressSource::kCycles;
  std::map<kvm::GuestAddress, uint64_t> counts = {{{.address = 0x10}, 3}};
};

class FakeSampler final : public kvm::AddressSampler {
 public:
  explicit FakeSampler(Told& told) : AddressSampler(1), told_(told) {}
  ~FakeSampler() override { ++told_.closed; }

  kvm::AddressSource source() const override { return told_.source; }
  absl::Status Start() override { return ++told_.started, told_.start; }
  absl::Status Stop() override {
    ++told_.stopped;
    counts_[0].counts = told_.counts;
    counts_[0].lost = 5;
    return absl::OkStatus();
  }
  absl::Status Collect() override { return told_.collect; }

 private:
  Told& told_;
};
class TriggeredWindowsTest : public ::testing::Test {
 protected:
  TriggeredWindowsTest() {
    for (int i = 0; i < 8; ++i) vm_.vcpus.push_back({.index = 10 + i, .tid = 101 + i});
    verdicts_.resize(vm_.vcpus.size(), {.band = core::Band::kHalted});
  }

  TriggeredWindows Watch(Triggers triggers) {
    const OpenAddresses open =
        [this](const kvm::Vm& vm) -> absl::StatusOr<std::unique_ptr<kvm::AddressSampler>> {
      EXPECT_EQ(vm.vcpus.size(), 1u);
      told_.opened.push_back(vm.vcpus.front().index);
      if (!told_.refused.ok()) return told_.refused;
      return std::make_unique<FakeSampler>(told_);
    };
    return TriggeredWindows(triggers, HotAddressWindows(open, read_code_), [] { return g_now_ns; });
  }

  // One tick of the epoch, as a recording makes it.
  void Tick(TriggeredWindows& watch, int64_t at_ms) {
    g_now_ns = at_ms * kMs_ns;
    const core::Sample sample{.tick = tick_++, .wake_ns = at_ms * kMs_ns};
    watch.Observe(kEpoch, vm_, sample, verdicts_);
    watch.Collect();
  }

  static std::vector<v1::HotAddresses> TakeFrom(TriggeredWindows& watch) {
    std::vector<v1::HotAddresses> found;
    for (const v1::TimelineRecord& record : watch.Take()) {
      EXPECT_TRUE(record.has_hot_addresses());
      found.push_back(record.hot_addresses());
    }
    return found;
  }

  Told told_;
  ReadCode read_code_;  // none
  kvm::Vm vm_;
  uint64_t tick_ = 1;
  std::vector<core::Verdict> verdicts_;
};

}  // namespace vcpulse::recorder

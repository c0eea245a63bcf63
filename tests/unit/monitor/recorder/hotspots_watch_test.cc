#include "monitor/recorder/hotspots_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs_ns = 1'000'000;
constexpr HotspotsWatch::Epoch kEpoch = {1, 2};

int64_t g_now_ns = 0;

// What the samplers of a test were told.
struct Told {
  std::vector<int> opened;  // indexes of vCPUs
  int started = 0;
  int stopped = 0;
  int closed = 0;
  absl::Status refused;
  kvm::AddressSource source = kvm::AddressSource::kCycles;
  std::map<kvm::GuestAddress, uint64_t> counts = {{{.address = 0x10}, 3}};
};

class FakeSampler final : public kvm::AddressSampler {
 public:
  explicit FakeSampler(Told& told) : AddressSampler(1), told_(told) {}
  ~FakeSampler() override { ++told_.closed; }

  kvm::AddressSource source() const override { return told_.source; }
  absl::Status Start() override { return ++told_.started, absl::OkStatus(); }
  absl::Status Stop() override {
    ++told_.stopped;
    counts_[0].counts = told_.counts;
    counts_[0].lost = 5;
    return absl::OkStatus();
  }
  absl::Status Collect() override { return absl::OkStatus(); }

 private:
  Told& told_;
};

class HotspotsWatchTest : public ::testing::Test {
 protected:
  HotspotsWatchTest() {
    for (int i = 0; i < 8; ++i) vm_.vcpus.push_back({.index = 10 + i, .tid = 101 + i});
    verdicts_.resize(vm_.vcpus.size(), {.band = core::Band::kHalted});
  }

  HotspotsWatch Watch(HotspotsTriggers triggers) {
    return HotspotsWatch(
        triggers,
        [this](const kvm::Vm& vm) -> absl::StatusOr<std::unique_ptr<kvm::AddressSampler>> {
          EXPECT_EQ(vm.vcpus.size(), 1u);
          told_.opened.push_back(vm.vcpus.front().index);
          if (!told_.refused.ok()) return told_.refused;
          return std::make_unique<FakeSampler>(told_);
        },
        [] { return g_now_ns; });
  }

  // One tick of the epoch, as a recording makes it.
  void Tick(HotspotsWatch& watch, int64_t at_ms) {
    g_now_ns = at_ms * kMs_ns;
    watch.Observe(kEpoch, vm_, at_ms * kMs_ns, verdicts_);
    watch.Collect();
  }

  Told told_;
  kvm::Vm vm_;
  std::vector<core::Verdict> verdicts_;
};

TEST_F(HotspotsWatchTest, AWindowBeginsAfter200MsAndEndsAfterASecond) {
  HotspotsWatch watch = Watch({.spinning = true});
  verdicts_[1].band = core::Band::kSpinning;
  Tick(watch, 1000);
  Tick(watch, 1199);
  EXPECT_THAT(told_.opened, IsEmpty());
  Tick(watch, 1200);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  EXPECT_EQ(told_.started, 1);
  EXPECT_TRUE(watch.TakesACounter(kEpoch));
  EXPECT_FALSE(watch.TakesACounter({1, 3}));
  Tick(watch, 2199);
  EXPECT_THAT(watch.Take(), IsEmpty());
  Tick(watch, 2200);
  const std::vector<v1::HotAddresses> found = watch.Take();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].vm(), 1u);
  EXPECT_EQ(found[0].epoch(), 2u);
  EXPECT_EQ(found[0].vcpu_index(), 11u);
  EXPECT_EQ(found[0].trigger(), v1::HotAddresses::TRIGGER_SPINNING);
  EXPECT_EQ(found[0].source(), "cycles");
  EXPECT_EQ(found[0].begin_mono_ns(), 1200 * kMs_ns);
  EXPECT_EQ(found[0].mono_ns(), 2200 * kMs_ns);
  EXPECT_EQ(found[0].lost(), 5u);
  EXPECT_THAT(found[0].addresses(), ElementsAre(0x10));
  EXPECT_THAT(found[0].samples(), ElementsAre(3));
  EXPECT_EQ(told_.stopped, 1);
  EXPECT_EQ(told_.closed, 1);
  EXPECT_FALSE(watch.TakesACounter(kEpoch));
  EXPECT_THAT(watch.Take(), IsEmpty());
}

TEST_F(HotspotsWatchTest, APauseOfTenSecondsFollows) {
  HotspotsWatch watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (int64_t ms = 0; ms <= 11'199; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  Tick(watch, 11'200);
  EXPECT_THAT(told_.opened, SizeIs(2));
}

// A change of band in between begins the time anew.
TEST_F(HotspotsWatchTest, The200MsAreInOnePiece) {
  HotspotsWatch watch = Watch({.spinning = true});
  for (const int64_t ms : {0, 100, 200, 300, 400, 500}) {
    verdicts_[0].band = ms == 200 ? core::Band::kProductive : core::Band::kSpinning;
    Tick(watch, ms);
    EXPECT_THAT(told_.opened, SizeIs(ms < 500 ? 0 : 1)) << ms;
  }
}

TEST_F(HotspotsWatchTest, OnlyWhatWasAskedForBeginsOne) {
  HotspotsWatch watch = Watch({.starved = true});
  verdicts_[0].band = core::Band::kSpinning;
  verdicts_[1].starved = true;
  for (const int64_t ms : {0, 100, 200, 1200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  const std::vector<v1::HotAddresses> found = watch.Take();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].trigger(), v1::HotAddresses::TRIGGER_STARVED);
}

TEST_F(HotspotsWatchTest, FourAreOpenAtMost) {
  HotspotsWatch watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (const int64_t ms : {0, 100, 200, 300, 1199}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13));
  Tick(watch, 1200);  // the first ones end
  Tick(watch, 1300);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
}

TEST_F(HotspotsWatchTest, AWindowEndsWithItsEpoch) {
  HotspotsWatch watch = Watch({.spinning = true});
  verdicts_[3].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 300}) Tick(watch, ms);
  watch.End({1, 1});
  EXPECT_THAT(watch.Take(), IsEmpty());
  watch.End(kEpoch);
  const std::vector<v1::HotAddresses> found = watch.Take();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].mono_ns(), 300 * kMs_ns);
  EXPECT_EQ(told_.closed, 1);
}

// Said once per epoch, not for each vCPU and each 200 ms.
TEST_F(HotspotsWatchTest, WhatIsRefusedIsSaidOnce) {
  told_.refused = absl::FailedPreconditionError("no source");
  HotspotsWatch watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (int64_t ms = 0; ms < 30'000; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  const std::vector<v1::HotAddresses> found = watch.Take();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].source(), "");
  EXPECT_EQ(found[0].refused(), "no source");
}

// A counter of the PMU is taken by one source alone.
TEST_F(HotspotsWatchTest, OtherSourcesTakeNoCounter) {
  told_.source = kvm::AddressSource::kKvmExit;
  HotspotsWatch watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  EXPECT_FALSE(watch.TakesACounter(kEpoch));
}

TEST_F(HotspotsWatchTest, TheAddressesWithMostSamplesAreKept) {
  told_.counts.clear();
  for (uint64_t i = 1; i <= 600; ++i) {
    told_.counts[{.address = i, .mode = kvm::GuestMode::kUser}] = i;
  }
  HotspotsWatch watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 1200}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = watch.Take();
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_EQ(found[0].addresses_size(), 512);
  EXPECT_EQ(found[0].addresses(0), 600u);
  EXPECT_EQ(found[0].samples(511), 89u);
  EXPECT_EQ(found[0].modes(0), v1::GUEST_MODE_USER);
  EXPECT_EQ(found[0].further_samples(), 88u * 89 / 2);
}

class RecordedWindows : public RecordingFixture {
 protected:
  Recording sampling_{{.root = proc_.root(),
                       .open = {.wanted = {.set = kvm::EventSet::kMin}},
                       .residency = {{.max_hz = 1e9}},
                       .hotspots = {.starved = true},
                       .hotspots_source = kvm::AddressSource::kQmp,
                       .now_ns = fakes::FakeClock::Now},
                      perf_,
                      writer_};

  void TickThem() {
    fakes::FakeClock::now_ns = static_cast<int64_t>(10'000'000'000 + tick_ * 100'000'000);
    const int64_t now = fakes::FakeClock::now_ns;
    sampling_.sampler().TakeCommands();
    sampling_.sampler().Tick(tick_++, now, now);
    sampling_.Drain();
  }
};

// The record names what could not be had; a person is told once.
TEST_F(RecordedWindows, ARefusalIsRecordedAndSaid) {
  ASSERT_TRUE(sampling_.Track(web_.vm()).ok());
  static_cast<void>(sampling_.TakeNotices());
  for (uint64_t i = 0; i < 8; ++i) {
    for (int vcpu = 0; vcpu < 2; ++vcpu) {
      web_.SetScheduling(vcpu, i * 50'000'000, i * 50'000'000);
    }
    TickThem();
  }
  std::vector<v1::HotAddresses> recorded;
  for (const auto& record : writer_.records) {
    if (record.has_hot_addresses()) recorded.push_back(record.hot_addresses());
  }
  ASSERT_THAT(recorded, SizeIs(1));
  EXPECT_EQ(recorded[0].vm(), 1u);
  EXPECT_EQ(recorded[0].epoch(), 1u);
  EXPECT_EQ(recorded[0].trigger(), v1::HotAddresses::TRIGGER_STARVED);
  EXPECT_THAT(recorded[0].refused(), HasSubstr("its QMP address is not known"));
  EXPECT_THAT(sampling_.TakeNotices(),
              ElementsAre(HasSubstr("hot addresses: VM web (PID 10) cannot be sampled: qmp")));
}

}  // namespace
}  // namespace vcpulse::recorder

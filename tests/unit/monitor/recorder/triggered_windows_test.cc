#include "monitor/recorder/triggered_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "monitor/recorder/windows.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs_ns = 1'000'000;
constexpr TriggeredWindows::Epoch kEpoch = {1, 2};

int64_t g_now_ns = 0;

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
    return TriggeredWindows(triggers, HotAddressWindows(open), [] { return g_now_ns; });
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
  kvm::Vm vm_;
  uint64_t tick_ = 1;
  std::vector<core::Verdict> verdicts_;
};

TEST_F(TriggeredWindowsTest, AWindowBeginsAfter200MsAndEndsAfterASecond) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[1].band = core::Band::kSpinning;
  Tick(watch, 1000);
  Tick(watch, 1199);
  EXPECT_THAT(told_.opened, IsEmpty());
  Tick(watch, 1200);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  EXPECT_EQ(told_.started, 1);
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), ElementsAre(1));
  EXPECT_THAT(watch.SharingTheirPmu({1, 3}), IsEmpty());
  Tick(watch, 2199);
  EXPECT_THAT(watch.Take(), IsEmpty());
  Tick(watch, 2200);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
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
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), IsEmpty());
  EXPECT_THAT(watch.Take(), IsEmpty());
}

TEST_F(TriggeredWindowsTest, APauseOfTenSecondsFollows) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (int64_t ms = 0; ms <= 11'199; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  Tick(watch, 11'200);
  EXPECT_THAT(told_.opened, SizeIs(2));
}

// A change of band in between begins the time anew.
TEST_F(TriggeredWindowsTest, The200MsAreInOnePiece) {
  TriggeredWindows watch = Watch({.spinning = true});
  for (const int64_t ms : {0, 100, 200, 300, 400, 500}) {
    verdicts_[0].band = ms == 200 ? core::Band::kProductive : core::Band::kSpinning;
    Tick(watch, ms);
    EXPECT_THAT(told_.opened, SizeIs(ms < 500 ? 0 : 1)) << ms;
  }
}

TEST_F(TriggeredWindowsTest, OnlyWhatWasAskedForBeginsOne) {
  TriggeredWindows watch = Watch({.starved = true});
  verdicts_[0].band = core::Band::kSpinning;
  verdicts_[1].starved = true;
  for (const int64_t ms : {0, 100, 200, 1200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(11));
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].trigger(), v1::HotAddresses::TRIGGER_STARVED);
}

TEST_F(TriggeredWindowsTest, FourAreOpenAtMost) {
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (const int64_t ms : {0, 100, 200, 300, 1199}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13));
  Tick(watch, 1200);  // the first ones end
  Tick(watch, 1300);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
}

TEST_F(TriggeredWindowsTest, AWindowEndsWithItsEpoch) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[3].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 300}) Tick(watch, ms);
  watch.End({1, 1});
  EXPECT_THAT(watch.Take(), IsEmpty());
  watch.End(kEpoch);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].mono_ns(), 300 * kMs_ns);
  EXPECT_EQ(told_.closed, 1);
}

// Said once per epoch, not for each vCPU and each 200 ms.
TEST_F(TriggeredWindowsTest, WhatIsRefusedIsSaidOnce) {
  told_.refused = absl::FailedPreconditionError("no source");
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (int64_t ms = 0; ms < 30'000; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].source(), "");
  EXPECT_EQ(found[0].refused(), "no source");
}

// One vCPU's refusal is its own where others could be opened.
TEST_F(TriggeredWindowsTest, AfterAWindowARefusalIsOfOneVcpu) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  told_.refused = absl::NotFoundError("the thread has ended");
  verdicts_[1].band = core::Band::kSpinning;
  for (const int64_t ms : {300, 500}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11));
  told_.refused = absl::OkStatus();
  verdicts_[2].band = core::Band::kSpinning;
  for (const int64_t ms : {600, 800}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10, 11, 12));
}

TEST_F(TriggeredWindowsTest, ASamplerThatDoesNotStartIsARefusal) {
  told_.start = absl::InternalError("starting the sampling: EINVAL");
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 400}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].source(), "");
  EXPECT_THAT(found[0].refused(), HasSubstr("EINVAL"));
  EXPECT_EQ(told_.closed, 1);
}

// What was sampled until then counts, and the record says what happened.
TEST_F(TriggeredWindowsTest, AWindowEndsWhereItsSamplerFails) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  told_.collect = absl::UnavailableError("another client holds the socket");
  Tick(watch, 300);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].mono_ns(), 300 * kMs_ns);
  EXPECT_THAT(found[0].samples(), ElementsAre(3));
  EXPECT_EQ(found[0].refused(), "cycles: another client holds the socket");
}

// It keeps the caller waiting and stops the VM.
TEST_F(TriggeredWindowsTest, OfQmpOneIsOpenAtMost) {
  told_.source = kvm::AddressSource::kQmp;
  TriggeredWindows watch = Watch({.spinning = true});
  for (core::Verdict& verdict : verdicts_) verdict.band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 400}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, ElementsAre(10));
}

// Ticks that were kept while the output stood still: what was then says nothing of now.
TEST_F(TriggeredWindowsTest, LateTicksBeginNoWindow) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  g_now_ns = 60'000 * kMs_ns;
  for (uint64_t tick = 1; tick <= 5; ++tick) {
    const auto wake_ns = static_cast<int64_t>(tick) * 100 * kMs_ns;
    watch.Observe(kEpoch, vm_, {.tick = tick, .wake_ns = wake_ns}, verdicts_);
  }
  EXPECT_THAT(told_.opened, IsEmpty());
}

TEST_F(TriggeredWindowsTest, AMissingTickBeginsTheTimeAnew) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  Tick(watch, 0);
  Tick(watch, 100);
  ++tick_;
  Tick(watch, 300);
  Tick(watch, 400);
  EXPECT_THAT(told_.opened, IsEmpty());
  Tick(watch, 500);
  EXPECT_THAT(told_.opened, SizeIs(1));
}

// An epoch that changes is no reason to sample a vCPU more often.
TEST_F(TriggeredWindowsTest, ThePauseGoesOnInTheNextEpoch) {
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  watch.End(kEpoch);
  for (int64_t ms = 300; ms < 11'200; ms += 100) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  Tick(watch, 11'200);
  EXPECT_THAT(told_.opened, SizeIs(2));
}

// A counter of the PMU is taken by one source alone.
TEST_F(TriggeredWindowsTest, OtherSourcesTakeNoCounter) {
  told_.source = kvm::AddressSource::kKvmExit;
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200}) Tick(watch, ms);
  EXPECT_THAT(told_.opened, SizeIs(1));
  EXPECT_THAT(watch.SharingTheirPmu(kEpoch), IsEmpty());
}

TEST_F(TriggeredWindowsTest, TheAddressesWithMostSamplesAreKept) {
  told_.counts.clear();
  for (uint64_t i = 1; i <= 600; ++i) {
    told_.counts[{.address = i, .mode = kvm::GuestMode::kUser}] = i;
  }
  TriggeredWindows watch = Watch({.spinning = true});
  verdicts_[0].band = core::Band::kSpinning;
  for (const int64_t ms : {0, 200, 1200}) Tick(watch, ms);
  const std::vector<v1::HotAddresses> found = TakeFrom(watch);
  ASSERT_THAT(found, SizeIs(1));
  ASSERT_EQ(found[0].addresses_size(), 512);
  EXPECT_EQ(found[0].addresses(0), 600u);
  EXPECT_EQ(found[0].samples(511), 89u);
  EXPECT_EQ(found[0].modes(0), v1::GUEST_MODE_USER);
  EXPECT_EQ(found[0].further_samples(), 88u * 89 / 2);
}

// What a competitor sampler of a test gives.
class FakeCompetitors final : public kvm::CompetitorSampler {
 public:
  explicit FakeCompetitors(absl::Status collect) : collect_(std::move(collect)) {}
  absl::Status Collect() override { return collect_; }
  kvm::WaitAccount Stop() override {
    return {.waited_ns = 70,
            .unattributed_ns = 20,
            .run_delay_ns = 75,
            .lost = 3,
            .cpus = {2, 5},
            .competitors = {{.tid = 9,
                             .pid = 8,
                             .thread_name = "CPU 0/KVM",
                             .process_name = "qemu",
                             .vm = "db",
                             .ns = 50}}};
  }

 private:
  absl::Status collect_;
};

class CompetitorWindowsTest : public TriggeredWindowsTest {
 protected:
  v1::Competitors WindowOf(const absl::Status& opens, const absl::Status& collects) {
    const OpenCompetitors open =
        [&](const kvm::Vm& vm) -> absl::StatusOr<std::unique_ptr<kvm::CompetitorSampler>> {
      EXPECT_EQ(vm.vcpus.front().index, 12);
      if (!opens.ok()) return opens;
      return std::make_unique<FakeCompetitors>(collects);
    };
    TriggeredWindows windows({.starved = true}, CompetitorWindows(open), [] { return g_now_ns; });
    verdicts_[2].starved = true;
    for (const int64_t ms : {0, 200, 1200}) Tick(windows, ms);
    const std::vector<v1::TimelineRecord> records = windows.Take();
    EXPECT_THAT(records, SizeIs(1));
    EXPECT_THAT(windows.SharingTheirPmu(kEpoch), IsEmpty());
    return records.empty() ? v1::Competitors() : records.front().competitors();
  }
};

TEST_F(CompetitorWindowsTest, KeepTheWholeAccount) {
  const v1::Competitors window = WindowOf(absl::OkStatus(), absl::OkStatus());
  EXPECT_EQ(window.vm(), 1u);
  EXPECT_EQ(window.epoch(), 2u);
  EXPECT_EQ(window.vcpu_index(), 12u);
  EXPECT_EQ(window.begin_mono_ns(), 200 * kMs_ns);
  EXPECT_EQ(window.mono_ns(), 1200 * kMs_ns);
  EXPECT_EQ(window.refused(), "");
  EXPECT_EQ(window.ended_by(), "");
  EXPECT_EQ(window.waited_ns(), 70u);
  EXPECT_EQ(window.unattributed_ns(), 20u);
  EXPECT_EQ(window.run_delay_ns(), 75u);
  EXPECT_EQ(window.lost(), 3u);
  EXPECT_THAT(window.cpus(), ElementsAre(2, 5));
  ASSERT_EQ(window.competitors_size(), 1);
  const v1::Competitor& one = window.competitors(0);
  EXPECT_EQ(one.tid(), 9u);
  EXPECT_EQ(one.pid(), 8u);
  EXPECT_EQ(one.thread_name(), "CPU 0/KVM");
  EXPECT_EQ(one.process_name(), "qemu");
  EXPECT_EQ(one.vm_name(), "db");
  EXPECT_EQ(one.ns(), 50u);
}

TEST_F(CompetitorWindowsTest, SayWhyThereIsNone) {
  const v1::Competitors window =
      WindowOf(absl::FailedPreconditionError("no tracefs"), absl::OkStatus());
  EXPECT_EQ(window.refused(), "no tracefs");
  EXPECT_EQ(window.mono_ns(), window.begin_mono_ns());
  EXPECT_EQ(window.waited_ns(), 0u);
}

TEST_F(CompetitorWindowsTest, EndWithTheirThread) {
  const v1::Competitors window =
      WindowOf(absl::OkStatus(), absl::NotFoundError("the thread has ended"));
  EXPECT_EQ(window.ended_by(), "the thread has ended");
  EXPECT_EQ(window.mono_ns(), 200 * kMs_ns);
  EXPECT_EQ(window.waited_ns(), 70u);
}

class RecordedWindows : public RecordingFixture {
 protected:
  Recording::Options OptionsOf(OpenAddresses open) {
    return {.root = proc_.root(),
            .open = {.wanted = {.set = kvm::EventSet::kMin}},
            .residency = {{.max_hz = 1e9}},
            .hotspots = {.starved = true},
            .hotspots_source = kvm::AddressSource::kQmp,
            .open_hotspots = std::move(open),
            .now_ns = fakes::FakeClock::Now};
  }

  // Ticks in which both vCPUs wait for a CPU half of the time. Their groups get no time on the PMU
  // from tick `until` on.
  void Starve(Recording& recording, uint64_t ticks, uint64_t until = UINT64_MAX) {
    for (uint64_t i = 0; i < ticks; ++i, ++tick_) {
      fakes::FakeClock::now_ns = static_cast<int64_t>(10'000'000'000 + tick_ * 100'000'000);
      const int64_t now = fakes::FakeClock::now_ns;
      for (int vcpu = 0; vcpu < 2; ++vcpu) {
        web_.SetScheduling(vcpu, tick_ * 50'000'000, tick_ * 50'000'000);
        web_.group(vcpu).time_enabled_ns += 50'000'000;
        if (tick_ < until) web_.group(vcpu).time_running_ns += 50'000'000;
      }
      recording.sampler().TakeCommands();
      recording.sampler().Tick(tick_, now, now);
      recording.Drain();
    }
  }

  std::vector<v1::HotAddresses> Recorded() const {
    std::vector<v1::HotAddresses> recorded;
    for (const auto& record : writer_.records) {
      if (record.has_hot_addresses()) recorded.push_back(record.hot_addresses());
    }
    return recorded;
  }

  bool WasReduced() const {
    return std::ranges::any_of(writer_.records, [](const v1::TimelineRecord& record) {
      return record.life_cycle().kind() == v1::LifeCycle::KIND_SET_REDUCED;
    });
  }

  Told told_;
};

// The record names what could not be had; a person is told once.
TEST_F(RecordedWindows, ARefusalIsRecordedAndSaid) {
  Recording recording(OptionsOf(nullptr), perf_, writer_);
  ASSERT_TRUE(recording.Track(web_.vm()).ok());
  static_cast<void>(recording.TakeNotices());
  Starve(recording, 8);
  ASSERT_THAT(Recorded(), SizeIs(1));
  EXPECT_EQ(Recorded()[0].vm(), 1u);
  EXPECT_EQ(Recorded()[0].epoch(), 1u);
  EXPECT_EQ(Recorded()[0].trigger(), v1::HotAddresses::TRIGGER_STARVED);
  EXPECT_THAT(Recorded()[0].refused(), HasSubstr("its QMP address is not known"));
  EXPECT_THAT(recording.TakeNotices(),
              testing::Contains(HasSubstr("hot addresses: VM web (PID 10) cannot be sampled: qmp"))
                  .Times(1));
}

TEST_F(RecordedWindows, OfCompetitorsAreRecordedToo) {
  Recording::Options options = OptionsOf(nullptr);
  options.hotspots = {};
  options.competitors = true;
  options.open_competitors =
      [](const kvm::Vm&) -> absl::StatusOr<std::unique_ptr<kvm::CompetitorSampler>> {
    return absl::FailedPreconditionError("no tracefs");
  };
  Recording recording(options, perf_, writer_);
  ASSERT_TRUE(recording.Track(web_.vm()).ok());
  static_cast<void>(recording.TakeNotices());
  Starve(recording, 8);
  EXPECT_EQ(std::ranges::count_if(
                writer_.records,
                [](const v1::TimelineRecord& record) { return record.has_competitors(); }),
            1);
  EXPECT_THAT(recording.TakeNotices(), testing::Contains("competitors: no tracefs").Times(1));
  EXPECT_THAT(Recorded(), IsEmpty());
}

// Without counters nothing is SPINNING: a person who waits for such windows is told.
TEST_F(RecordedWindows, WithoutCountersSpinningBeginsNone) {
  for (const kvm::EventSet set : {kvm::EventSet::kDegraded, kvm::EventSet::kMin}) {
    Recording::Options options = OptionsOf(nullptr);
    options.hotspots = {.spinning = true};
    options.open.wanted.set = set;
    Recording recording(options, perf_, writer_);
    ASSERT_TRUE(recording.Track(web_.vm()).ok());
    EXPECT_THAT(recording.TakeNotices(),
                testing::Contains(HasSubstr("no vCPU is called SPINNING: `--hotspots starved`"))
                    .Times(set == kvm::EventSet::kDegraded ? 1 : 0));
  }
}

// Windows of a VM that ends are in the timeline.
TEST_F(RecordedWindows, EndWithTheirVm) {
  Recording recording(
      OptionsOf([this](const kvm::Vm&) { return std::make_unique<FakeSampler>(told_); }), perf_,
      writer_);
  ASSERT_TRUE(recording.Track(web_.vm()).ok());
  Starve(recording, 6);
  EXPECT_EQ(told_.started, 2);
  EXPECT_THAT(Recorded(), IsEmpty());
  recording.RetireAll();
  Starve(recording, 1);
  EXPECT_TRUE(recording.idle());
  EXPECT_THAT(Recorded(), SizeIs(2));
  EXPECT_EQ(told_.closed, 2);
}

// Groups that wait for a window are not stepped down for it; without one they would be.
TEST_F(RecordedWindows, NoSetIsReducedForOne) {
  for (const bool has_windows : {true, false}) {
    SCOPED_TRACE(has_windows);
    writer_.records.clear();
    tick_ = 0;
    told_ = {};
    Recording::Options options =
        OptionsOf([this](const kvm::Vm&) { return std::make_unique<FakeSampler>(told_); });
    if (!has_windows) options.hotspots = {};
    options.now_ns = []() -> int64_t { return fakes::FakeClock::now_ns; };
    Recording recording(options, perf_, writer_);
    ASSERT_TRUE(recording.Track(web_.vm()).ok());
    Starve(recording, 5, 2);
    EXPECT_EQ(told_.started, has_windows ? 2 : 0);
    // A second of time enabled and none on the PMU, three samples in a row; a window is open.
    for (int vcpu = 0; vcpu < 2; ++vcpu) web_.group(vcpu).time_enabled_ns += 1'000'000'000;
    Starve(recording, 4, 2);
    EXPECT_EQ(WasReduced(), !has_windows);
  }
}

}  // namespace
}  // namespace vcpulse::recorder

// The windows of a whole recording: what of them is written and said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/monitor/recorder/fake_windows.h"
#include "tests/unit/monitor/recorder/recording_fixture.h"

namespace vcpulse::recorder {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

#include "monitor/sampler/tick_thread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "tests/fakes/sampled_vm.h"

namespace vcpulse::sampler {
namespace {

// Takes handovers until `count` samples came, at most 10 s.
std::vector<core::Sample> Collect(Sampler& sampler, size_t count) {
  std::vector<core::Sample> samples;
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (samples.size() < count && absl::Now() < give_up) {
    Handover handover;
    while (sampler.Take(handover)) {
      if (handover.kind != Handover::Kind::kSample) continue;
      samples.push_back(*handover.sample);
      handover.epoch->Recycle(handover.sample);
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  return samples;
}

class TickThreadTest : public ::testing::Test {
 protected:
  fakes::FakePerfEvents perf_;
  fakes::ProcDir proc_;
  fakes::SampledVm vm_{perf_, proc_, "web", 10, 11, 2};
  std::unique_ptr<Epoch> epoch_ = vm_.StartEpoch(1, 1, 64);
  Sampler sampler_{{.now_ns = MonotonicNow_ns}};
};

// Deadlines are absolute: whatever each tick's lateness, they stay a whole number of intervals
// apart, and no tick is taken before its deadline.
TEST_F(TickThreadTest, TicksAtAbsoluteDeadlines) {
  sampler_.Add(epoch_.get());
  auto ticker = TickThread::Start(sampler_, {.interval = absl::Milliseconds(5)});
  ASSERT_TRUE(ticker.ok());
  const auto samples = Collect(sampler_, 20);
  ticker->reset();
  ASSERT_GE(samples.size(), 20u);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_GE(samples[i].wake_ns, samples[i].deadline_ns);
    EXPECT_EQ(samples[i].deadline_ns - samples[0].deadline_ns,
              static_cast<int64_t>(samples[i].tick - samples[0].tick) * 5'000'000);
  }
}

// With an interval of an hour, stopping and retiring must not wait for the next tick.
TEST_F(TickThreadTest, WakesForCommandsBetweenTicks) {
  sampler_.Add(epoch_.get());
  auto ticker = TickThread::Start(sampler_, {.interval = absl::Hours(1)});
  ASSERT_TRUE(ticker.ok());
  ASSERT_EQ(Collect(sampler_, 1).size(), 1u);
  sampler_.Retire(epoch_.get());
  (*ticker)->Wake();
  Handover handover;
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (!sampler_.Take(handover) && absl::Now() < give_up) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(handover.kind, Handover::Kind::kRetired);
  const absl::Time before = absl::Now();
  ticker->reset();
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
  EXPECT_EQ(perf_.groups.at(11).reads, 1);
}

// 2 vCPUs of 6 ms each are more than a quarter of 40 ms, and not of 400 ms.
TEST_F(TickThreadTest, CountsTicksThatTakeMoreThanAQuarterOfTheInterval) {
  perf_.read_time = std::chrono::milliseconds(6);
  sampler_.Add(epoch_.get());
  auto ticker = TickThread::Start(sampler_, {.interval = absl::Milliseconds(40)});
  ASSERT_TRUE(ticker.ok());
  ASSERT_GE(Collect(sampler_, 3).size(), 3u);
  EXPECT_GE((*ticker)->slow_ticks(), 2u);  // the count follows the sample
  ticker->reset();
  ticker = TickThread::Start(sampler_, {.interval = absl::Milliseconds(400)});
  ASSERT_TRUE(ticker.ok());
  ASSERT_GE(Collect(sampler_, 2).size(), 2u);
  EXPECT_EQ((*ticker)->slow_ticks(), 0u);
}

TEST(SlowTickWatch, SaysOnceThatMostTicksAreSlow) {
  SlowTickWatch watch;
  EXPECT_FALSE(watch.Look(7, 7)) << "too few";
  EXPECT_FALSE(watch.Look(10, 5)) << "half are not most";
  EXPECT_FALSE(watch.Look(17, 12)) << "7 since";
  EXPECT_TRUE(watch.Look(18, 10)) << "5 of 8";
  EXPECT_FALSE(watch.Look(100, 92)) << "said";
}

TEST_F(TickThreadTest, RealtimeIsTakenOrRefusedInWords) {
  auto ticker = TickThread::Start(sampler_, {.interval = absl::Milliseconds(10), .realtime = true});
  if (ticker.ok()) {
    std::set<int> policies;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      policies.insert(sched_getscheduler(std::stoi(task.path().filename())));
    }
    EXPECT_TRUE(policies.contains(SCHED_FIFO));
  } else {
    EXPECT_EQ(ticker.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_NE(ticker.status().message().find("cap_sys_nice"), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace vcpulse::sampler

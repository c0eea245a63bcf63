#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/monitor/recorder/fake_windows.h"

namespace vcpulse::recorder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace vcpulse::recorder

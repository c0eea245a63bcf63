#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/vcpulse/collect_options.h"
#include "tools/vcpulse/commands.h"

namespace vcpulse::tools {
namespace {

// One that ends in time or does not.
class EndingCollector final : public stream::Collector {
 public:
  explicit EndingCollector(bool in_time) : in_time_(in_time) {}

  std::vector<stream::Address> addresses() const override { return {}; }
  bool Stop(std::chrono::milliseconds patience) override {
    patience_ = patience;
    return in_time_;
  }
  absl::Status ReloadCredentials() override { return absl::OkStatus(); }
  Stats stats() const override { return {}; }

  std::chrono::milliseconds patience_{};

 private:
  const bool in_time_;
};

TEST(StopCollector, InOrder) {
  EndingCollector collector(true);
  testing::internal::CaptureStderr();
  EXPECT_EQ(StopCollector(collector, std::chrono::seconds(30)), kExitOk);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(collector.patience_, std::chrono::seconds(30));
}

TEST(StopCollector, WhatWasNotWrittenInTimeIsAnError) {
  EndingCollector collector(false);
  testing::internal::CaptureStderr();
  EXPECT_EQ(StopCollector(collector, std::chrono::seconds(30)), kExitError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "vcpulse: not all that was received could be written within 30 s: it was not "
            "acknowledged, and the agents send it again\n");
}

}  // namespace
}  // namespace vcpulse::tools

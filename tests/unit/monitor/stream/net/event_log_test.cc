#include "monitor/stream/net/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kvm/base/clock.h"
#include "monitor/stream/net/storage_failures.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class EventLogTest : public ::testing::Test {
 protected:
  static constexpr int64_t kMinute_ns = 60 * kNsPerSecond;
  std::vector<std::string> said_;
  EventLog log_{[this](const std::string& line) { said_.push_back(line); }};
};

TEST_F(EventLogTest, TheSameIsSaidOnceAMinute) {
  log_.SayOnce("a", "first", 5 * kMinute_ns);
  log_.SayOnce("a", "again", 6 * kMinute_ns - 1);
  log_.SayOnce("b", "other", 6 * kMinute_ns - 1);
  log_.SayOnce("a", "later", 6 * kMinute_ns);
  EXPECT_THAT(said_, ElementsAre("first", "other", "later"));
}

TEST_F(EventLogTest, AStrangersPortDoesNotMakeItAnother) {
  log_.SayOfStranger("tcp 10.0.0.1:1000", "one", 5 * kMinute_ns);
  log_.SayOfStranger("tcp 10.0.0.1:1001", "two", 5 * kMinute_ns);
  log_.SayOfStranger("tcp 10.0.0.2:1000", "three", 5 * kMinute_ns);
  log_.Tick(6 * kMinute_ns);
  EXPECT_THAT(said_, ElementsAre("one", "three", HasSubstr(" 1 more connection ended")));
}

TEST_F(EventLogTest, StrangersHaveSoManyLinesTogetherAndTheRestIsCounted) {
  for (int i = 0; i < 50; ++i) {
    log_.SayOfStranger("tcp 10.0.0." + std::to_string(i) + ":1", "line", 5 * kMinute_ns);
  }
  EXPECT_THAT(said_, SizeIs(20));
  log_.Tick(6 * kMinute_ns);
  EXPECT_THAT(said_.back(), HasSubstr("30 more connections"));
  log_.SayOfStranger("tcp 10.0.1.1:1", "again", 6 * kMinute_ns);
  EXPECT_EQ(said_.back(), "again");
  log_.Tick(7 * kMinute_ns);
  EXPECT_THAT(said_, SizeIs(22)) << "nothing was left out";
}

TEST_F(EventLogTest, WhatAPeerSaysIsShownAsItCanBe) {
  log_.Say("a\x1b[2J");
  EXPECT_EQ(said_.back().find('\x1b'), std::string::npos);
}

TEST(StorageFailuresTest, LastUntilTheStreamIsWrittenOrNobodyTries) {
  using Change = StorageFailures::Change;
  const StreamKey one{.agent_folder = "one"};
  const StreamKey two{.agent_folder = "two"};
  const absl::Status full = absl::ResourceExhaustedError("full");
  StorageFailures failures;
  EXPECT_EQ(failures.Text(), "");
  EXPECT_EQ(failures.Note(one, full, 0), Change::kFirst);
  EXPECT_EQ(failures.Note(two, full, 0), Change::kNone);
  EXPECT_EQ(failures.Text(), "full (and 1 more stream)");
  EXPECT_EQ(failures.Note(one, absl::OkStatus(), 0), Change::kNone) << "the other one still fails";
  EXPECT_EQ(failures.Text(), "full");
  EXPECT_EQ(failures.Note(two, absl::OkStatus(), 0), Change::kNoneLeft);
  EXPECT_EQ(failures.Note(two, absl::OkStatus(), 0), Change::kNone);
  failures.Note(one, full, 0);
  failures.ForgetOld(60 * kNsPerSecond);
  EXPECT_EQ(failures.Text(), "full");
  failures.ForgetOld(60 * kNsPerSecond + 1);
  EXPECT_EQ(failures.Text(), "");
}

}  // namespace
}  // namespace vcpulse::stream

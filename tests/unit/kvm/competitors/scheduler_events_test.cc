#include "kvm/competitors/scheduler_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace vcpulse::kvm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = SchedulerEvent::Kind;

// Linux 6.18 on x86.
constexpr char kSwitchFormat[] =
    "name: sched_switch\nID: 372\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";
constexpr char kWakeupFormat[] =
    "name: sched_wakeup\nID: 374\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

class SchedulerRecordsTest : public ::testing::Test {
 protected:
  std::optional<SchedulerEvent> Decode(const std::vector<uint8_t>& record) {
    return records_->Decode(
        {.tid = 55, .time_ns = 1000, .record = record}, 3, 7,
        [this](pid_t tid, std::string_view name) { names_.emplace_back(tid, name); });
  }
  // A record of this tracepoint with texts and 32-bit numbers at their places.
  static std::vector<uint8_t> Record(
      uint16_t id, const std::vector<std::pair<size_t, int32_t>>& numbers,
      const std::vector<std::pair<size_t, std::string>>& texts = {}) {
    std::vector<uint8_t> record(64);
    std::memcpy(record.data(), &id, sizeof(id));
    for (const auto& [at, value] : numbers) std::memcpy(record.data() + at, &value, sizeof(value));
    for (const auto& [at, text] : texts) std::memcpy(record.data() + at, text.data(), text.size());
    return record;
  }

  absl::StatusOr<SchedulerRecords> records_ = SchedulerRecords::From(
      *ParseTracepointFormat(kSwitchFormat), *ParseTracepointFormat(kWakeupFormat));
  std::vector<std::pair<pid_t, std::string>> names_;
};

TEST_F(SchedulerRecordsTest, ASwitchNamesBothThreads) {
  ASSERT_TRUE(records_.ok());
  EXPECT_EQ(records_->switch_id(), 372u);
  EXPECT_EQ(records_->wakeup_id(), 374u);
  const auto event = Decode(Record(372, {{24, 8}, {56, 9}}, {{8, "hog"}, {40, "CPU 0/KVM"}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kSwitched);
  EXPECT_EQ(event->at_ns, 1000u);
  EXPECT_EQ(event->cpu, 3);
  EXPECT_EQ(event->tid, 8);
  EXPECT_EQ(event->next, 9);
  EXPECT_THAT(names_, ElementsAre(Pair(8, "hog"), Pair(9, "CPU 0/KVM")));
}

TEST_F(SchedulerRecordsTest, AWakeUpIsOfTheThreadAlone) {
  const auto event = Decode(Record(374, {{24, 7}, {32, 5}}));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kWoken);
  EXPECT_EQ(event->cpu, 5);  // where it is queued, not where it was woken
  EXPECT_FALSE(Decode(Record(374, {{24, 8}, {32, 5}})));
  EXPECT_THAT(names_, IsEmpty());
}

TEST_F(SchedulerRecordsTest, ASampleByTheClockTellsWhoRuns) {
  const auto event = Decode({0, 0, 0, 0});
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kRuns);
  EXPECT_EQ(event->tid, 55);
  EXPECT_EQ(event->cpu, 3);
}

TEST_F(SchedulerRecordsTest, WhatMakesNoSenseIsPassedOver) {
  EXPECT_FALSE(Decode(Record(999, {{24, 7}})));
  std::vector<uint8_t> cut = Record(372, {{24, 8}, {56, 9}});
  cut.resize(50);
  EXPECT_FALSE(Decode(cut));
  cut = Record(374, {{24, 7}});
  cut.resize(26);
  EXPECT_FALSE(Decode(cut));
}

TEST_F(SchedulerRecordsTest, WithoutNamesItGoesOn) {
  TracepointFormat nameless = *ParseTracepointFormat(kSwitchFormat);
  std::erase_if(nameless.fields, [](const auto& field) { return field.name.ends_with("comm"); });
  records_ = SchedulerRecords::From(nameless, *ParseTracepointFormat(kWakeupFormat));
  ASSERT_TRUE(records_.ok());
  EXPECT_TRUE(Decode(Record(372, {{24, 8}, {56, 9}})));
  EXPECT_THAT(names_, IsEmpty());
}

}  // namespace
}  // namespace vcpulse::kvm

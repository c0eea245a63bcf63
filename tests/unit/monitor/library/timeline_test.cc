// What a timeline and its records are through the C API, of timelines drawn by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "monitor/library/include/vcpulse.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/monitor/library/opened_timeline.h"

namespace vcpulse::library {
namespace {

using check::DrawnRecording;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LibraryTimeline, NamesVmsVcpusAndPhasesInTheirOrder) {
  DrawnRecording drawn;
  drawn.Name(1, "web");
  drawn.Name(2, "db");
  drawn.Begin(1, {.vcpus = {0, 2}, .unopened = {1}});
  drawn.Begin(2, {.vcpus = {0}});
  drawn.Draw({{1, {"[work]PP[idle]PP[work]P", "HHHHH"}}, {2, {"HHHHH"}}});
  const Timeline timeline = Open(drawn.Finish());
  ASSERT_EQ(vcpulse_timeline_vm_count(timeline.get()), 2U);
  EXPECT_STREQ(vcpulse_timeline_vm_name(timeline.get(), 0), "web");
  EXPECT_STREQ(vcpulse_timeline_vm_name(timeline.get(), 1), "db");
  EXPECT_EQ(vcpulse_timeline_vm_pid(timeline.get(), 1), 1002U);
  ASSERT_EQ(vcpulse_timeline_vcpu_count(timeline.get(), 0), 3U);
  EXPECT_EQ(vcpulse_timeline_vcpu_index(timeline.get(), 0, 1), 1U);
  EXPECT_EQ(vcpulse_timeline_vcpu_index(timeline.get(), 0, 2), 2U);
  EXPECT_EQ(vcpulse_timeline_vcpu_count(timeline.get(), 1), 1U);
  ASSERT_EQ(vcpulse_timeline_phase_count(timeline.get()), 2U);
  EXPECT_STREQ(vcpulse_timeline_phase(timeline.get(), 0), "work");
  EXPECT_STREQ(vcpulse_timeline_phase(timeline.get(), 1), "idle");
  EXPECT_STREQ(vcpulse_timeline_host(timeline.get()), "host1");
  EXPECT_EQ(vcpulse_timeline_duration_ns(timeline.get()), 500'000'000);
  EXPECT_EQ(vcpulse_timeline_damage(timeline.get()), nullptr);
  EXPECT_EQ(vcpulse_timeline_no_counters_reason(timeline.get()), nullptr);
}

TEST(LibraryTimeline, NothingLiesBeyondTheLastOne) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(vcpulse_timeline_vm_name(timeline.get(), 1), nullptr);
  EXPECT_EQ(vcpulse_timeline_vm_pid(timeline.get(), 1), 0U);
  EXPECT_EQ(vcpulse_timeline_vcpu_count(timeline.get(), 1), 0U);
  EXPECT_EQ(vcpulse_timeline_vcpu_index(timeline.get(), 0, 1), 0U);
  EXPECT_EQ(vcpulse_timeline_phase(timeline.get(), 0), nullptr);
}

TEST(LibraryTimeline, SaysWhyThereAreNoCountersAndThatARecordingWasKilled) {
  v1::Session session = DrawnRecording::Session();
  session.set_degraded_reason("no PMU");
  DrawnRecording drawn(session);
  drawn.Draw("%HN");
  const Timeline timeline = Open(drawn.Finish(/*killed=*/true));
  EXPECT_STREQ(vcpulse_timeline_no_counters_reason(timeline.get()), "no PMU");
  ASSERT_NE(vcpulse_timeline_damage(timeline.get()), nullptr);
}

TEST(LibraryTimeline, TwoRecordingsInOneFileAreRefusedByName) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  drawn.BeginStream();
  const std::string path = drawn.Finish();
  vcpulse_error* error = nullptr;
  EXPECT_EQ(vcpulse_timeline_open(path.c_str(), &error), nullptr);
  EXPECT_EQ(vcpulse_error_code(error), VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(vcpulse_error_message(error), HasSubstr(path));
  vcpulse_error_free(error);
}

// What a callback saw, copied.
struct Seen {
  std::vector<std::string> lines;
  std::map<std::string, std::optional<uint64_t>> counts;  // of the last tick
  std::optional<double> ipc;
  std::optional<uint64_t> run_delay_ns;
  std::optional<int32_t> starved;
  size_t stop_after = 1000;
};

template <typename T>
std::optional<T> Measured(const vcpulse_record& record, vcpulse_has bit, T value) {
  return (record.has & bit) != 0 ? std::optional(value) : std::nullopt;
}

int Take(const vcpulse_record* record, void* user) {
  Seen& seen = *static_cast<Seen*>(user);
  std::string line = std::to_string(record->kind);
  if (record->vm != nullptr) line += std::string(" ") + record->vm;
  if (record->kind == VCPULSE_KIND_TICK) {
    line += "/" + std::to_string(record->vcpu) + " " + std::to_string(record->band) + " " +
            (record->rule == nullptr ? "-" : record->rule) +
            (record->starved != 0 ? " starved" : "");
    seen.counts.clear();
    for (size_t i = 0; i < record->event_count; ++i) {
      const bool counted = record->event_shares[i] > 0;
      seen.counts[record->event_names[i]] =
          counted ? std::optional(record->event_counts[i]) : std::nullopt;
      EXPECT_EQ(record->event_shares[i], counted ? 1.0 : 0.0);
    }
    seen.ipc = Measured(*record, VCPULSE_HAS_IPC, record->ipc);
    seen.run_delay_ns = Measured(*record, VCPULSE_HAS_RUN_DELAY, record->run_delay_ns);
    seen.starved = Measured(*record, VCPULSE_HAS_STARVED, record->starved);
    EXPECT_EQ(record->interval_ns, 100'000'000);
  } else {
    EXPECT_EQ(record->rule, nullptr);
    EXPECT_EQ(record->event_count, 0U);
  }
  if (record->text != nullptr) line += std::string(" ") + record->text;
  seen.lines.push_back(line);
  return seen.lines.size() >= seen.stop_after ? 1 : 0;
}

vcpulse_status ForEach(const Timeline& timeline, Seen& seen) {
  return vcpulse_timeline_for_each_record(timeline.get(), Take, &seen, nullptr);
}

TEST(LibraryRecords, ComeInOrderAndFlat) {
  DrawnRecording drawn;
  drawn.waited_percent = 20;
  drawn.Draw("[a]Ps!");
  Seen seen;
  ASSERT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_STATUS_OK);
  EXPECT_THAT(seen.lines, ElementsAre("2 a", "1 guest1/0 3 ipc-high",
                                      "1 guest1/0 2 tight-loop starved", "4 guest1 vm-ended"));
  EXPECT_EQ(seen.counts["cycles"], 100'000'000U);
  EXPECT_EQ(seen.counts["instructions"], 50'000'000U);
  EXPECT_EQ(seen.ipc, 0.5);
  EXPECT_EQ(seen.run_delay_ns, 20'000'000U);
  EXPECT_EQ(seen.starved, 1);
}

TEST(LibraryRecords, WhatWasNotMeasuredIsNull) {
  DrawnRecording drawn;
  drawn.scheduler_times = false;
  drawn.Draw("%?N");
  Seen seen;
  ASSERT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_STATUS_OK);
  EXPECT_THAT(seen.lines, ElementsAre("1 guest1/0 0 -", "1 guest1/0 4 no-counters"));
  EXPECT_EQ(seen.ipc, std::nullopt);
  EXPECT_EQ(seen.run_delay_ns, std::nullopt);
  EXPECT_EQ(seen.starved, std::nullopt);
}

TEST(LibraryRecords, ACallbackThatWantsNoMoreEndsItWithoutAnError) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPP");
  Seen seen{.stop_after = 2};
  EXPECT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_STATUS_OK);
  EXPECT_THAT(seen.lines, testing::SizeIs(2));
}

TEST(LibraryRecords, AFileThatIsGoneIsAnError) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const std::string path = drawn.Finish();
  const Timeline timeline = Open(path);
  std::filesystem::remove(path);
  Seen seen;
  EXPECT_EQ(ForEach(timeline, seen), VCPULSE_STATUS_NOT_FOUND);
}

TEST(LibraryRecords, AnExceptionOfACallbackIsAnErrorWithItsWords) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_error* error = nullptr;
  const auto throwing = [](const vcpulse_record*, void*) -> int {
    throw std::runtime_error("of the callback");
  };
  EXPECT_EQ(vcpulse_timeline_for_each_record(timeline.get(), throwing, nullptr, &error),
            VCPULSE_STATUS_INTERNAL);
  EXPECT_STREQ(vcpulse_error_message(error), "of the callback");
  vcpulse_error_free(error);
  EXPECT_EQ(vcpulse_timeline_for_each_record(timeline.get(), nullptr, nullptr, nullptr),
            VCPULSE_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace vcpulse::library

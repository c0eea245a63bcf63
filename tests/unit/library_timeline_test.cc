// What a timeline tells through the C API: timelines drawn by hand, so that every answer can be
// worked out on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/library/include/vcpulse.h"
#include "tests/unit/drawn_recording.h"

namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vcpulse::check::DrawnRecording;

struct Free {
  void operator()(vcpulse_timeline* timeline) const { vcpulse_timeline_free(timeline); }
};
using Timeline = std::unique_ptr<vcpulse_timeline, Free>;

Timeline Open(const std::string& path) {
  vcpulse_error* error = nullptr;
  Timeline timeline(vcpulse_open(path.c_str(), &error));
  EXPECT_NE(timeline, nullptr) << vcpulse_error_message(error);
  vcpulse_error_free(error);
  return timeline;
}

// Of the last call that failed.
struct Failure {
  vcpulse_status status = VCPULSE_OK;
  std::string message;
};

struct Answer {
  vcpulse_bounds bounds = VCPULSE_BOUNDS_INIT;
  Failure failure;
};

template <typename Query, typename... What>
Answer Ask(Query query, const Timeline& timeline, const char* vm, What... what) {
  Answer answer;
  vcpulse_error* error = nullptr;
  answer.failure.status = query(timeline.get(), vm, what..., &answer.bounds, &error);
  answer.failure.message = vcpulse_error_message(error);
  EXPECT_EQ(vcpulse_error_code(error), answer.failure.status);
  vcpulse_error_free(error);
  return answer;
}

Answer Share(const Timeline& timeline, int band, const char* phase = nullptr) {
  return Ask(vcpulse_share, timeline, nullptr, 0U, band, phase);
}

void ExpectBounds(const Answer& answer, double low, double high) {
  EXPECT_EQ(answer.failure.status, VCPULSE_OK) << answer.failure.message;
  EXPECT_THAT(answer.bounds.low, DoubleNear(low, 1e-6));
  EXPECT_THAT(answer.bounds.high, DoubleNear(high, 1e-6));
}

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
  vcpulse::v1::Session session = DrawnRecording::Session();
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
  EXPECT_EQ(vcpulse_open(path.c_str(), &error), nullptr);
  EXPECT_EQ(vcpulse_error_code(error), VCPULSE_INVALID_ARGUMENT);
  EXPECT_THAT(vcpulse_error_message(error), HasSubstr(path));
  vcpulse_error_free(error);
}

TEST(LibraryQueries, UnknownTimeMakesBounds) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPHHHUU");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Share(timeline, VCPULSE_BAND_PRODUCTIVE), 0.5, 0.7);
  ExpectBounds(Share(timeline, VCPULSE_BAND_HALTED), 0.3, 0.5);
  ExpectBounds(Share(timeline, VCPULSE_BAND_SPINNING), 0, 0.2);
  const Answer share = Share(timeline, VCPULSE_BAND_PRODUCTIVE);
  EXPECT_EQ(share.bounds.ticks, 10U);  // UNKNOWN is a verdict too
  EXPECT_EQ(share.bounds.judged_ns, 1'000'000'000);
  EXPECT_EQ(share.bounds.unknown_ns, 200'000'000);
}

TEST(LibraryQueries, APhaseIsAllOfItsSpans) {
  DrawnRecording drawn;
  drawn.Draw("SSSSS[a]PPPP[b]HHHH[a]HHHH[c]S");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Share(timeline, VCPULSE_BAND_PRODUCTIVE, "a"), 0.5, 0.5);
  ExpectBounds(Share(timeline, VCPULSE_BAND_HALTED, "b"), 1, 1);
}

TEST(LibraryQueries, LongestIsInNanoseconds) {
  DrawnRecording drawn;
  drawn.Draw("SSSPPSPPPP");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Ask(vcpulse_longest, timeline, nullptr, 0U, int{VCPULSE_BAND_SPINNING}, nullptr),
               300e6, 300e6);
}

TEST(LibraryQueries, PercentilesOfIpcAreWeightedByTime) {
  DrawnRecording drawn;
  drawn.Draw("SSPPPPPPPP");
  const Timeline timeline = Open(drawn.Finish());
  const Answer low = Ask(vcpulse_ipc_percentile, timeline, nullptr, 0U, 10.0, nullptr);
  EXPECT_NEAR(low.bounds.low, 0.5, 0.01);
  EXPECT_NEAR(low.bounds.high, 0.5, 0.01);
  const Answer middle = Ask(vcpulse_ipc_percentile, timeline, nullptr, 0U, 50.0, nullptr);
  EXPECT_NEAR(middle.bounds.low, 2, 0.02);
}

TEST(LibraryQueries, ResidencyIsTimeInTheGuest) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPPPPRR");
  ExpectBounds(Ask(vcpulse_residency, Open(drawn.Finish()), nullptr, 0U, nullptr), 0.9, 0.9);
}

TEST(LibraryQueries, GapsAreOfTheWholeVm) {
  DrawnRecording drawn;
  drawn.Draw("PPPP..PPPP");
  ExpectBounds(Ask(vcpulse_gaps, Open(drawn.Finish()), nullptr, nullptr), 0.2, 0.2);
}

TEST(LibraryQueries, StarvedIsAShareOfItsOwn) {
  DrawnRecording drawn;
  drawn.Draw("PPPppPPPPP");
  ExpectBounds(Ask(vcpulse_starved, Open(drawn.Finish()), nullptr, 0U, nullptr), 0.2, 0.2);
}

TEST(LibraryQueries, TheOnlyVmNeedsNoNameAndSeveralDo) {
  DrawnRecording drawn;
  drawn.Begin(1, {.vcpus = {0}});
  drawn.Begin(2, {.vcpus = {0, 1}});
  drawn.Draw({{1, {"PPPP"}}, {2, {"HHHH", "HHHH"}}});
  const Timeline timeline = Open(drawn.Finish());
  const Answer none = Share(timeline, VCPULSE_BAND_HALTED);
  EXPECT_EQ(none.failure.status, VCPULSE_INVALID_ARGUMENT);
  EXPECT_THAT(none.failure.message, HasSubstr("guest1 is 1001, guest2 is 1002"));
  // Only one VM has a vCPU 1: a query that happens to fit one only is no better.
  const Answer one = Ask(vcpulse_share, timeline, nullptr, 1U, int{VCPULSE_BAND_HALTED}, nullptr);
  EXPECT_EQ(one.failure.status, VCPULSE_INVALID_ARGUMENT);
  ExpectBounds(Ask(vcpulse_share, timeline, "guest2", 0U, int{VCPULSE_BAND_HALTED}, nullptr), 1, 1);
  ExpectBounds(Ask(vcpulse_share, timeline, "1001", 0U, int{VCPULSE_BAND_HALTED}, nullptr), 0, 0);
}

TEST(LibraryQueries, WhatNeverCameIsNotFound) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPP");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Share(timeline, VCPULSE_BAND_HALTED, "b").failure.status, VCPULSE_NOT_FOUND);
  const int halted = VCPULSE_BAND_HALTED;
  EXPECT_EQ(Ask(vcpulse_share, timeline, "no", 0U, halted, nullptr).failure.status,
            VCPULSE_NOT_FOUND);
  EXPECT_EQ(Ask(vcpulse_share, timeline, nullptr, 7U, halted, nullptr).failure.status,
            VCPULSE_NOT_FOUND);
}

TEST(LibraryQueries, WhatCannotBeAskedIsRefused) {
  DrawnRecording drawn;
  drawn.Draw("PPPP");
  const Timeline timeline = Open(drawn.Finish());
  const Answer band = Share(timeline, VCPULSE_BAND_NONE);
  EXPECT_EQ(band.failure.status, VCPULSE_INVALID_ARGUMENT);
  EXPECT_THAT(band.failure.message, HasSubstr("band 0"));
  EXPECT_EQ(Share(timeline, 99).failure.status, VCPULSE_INVALID_ARGUMENT);
  const Answer percentile = Ask(vcpulse_ipc_percentile, timeline, nullptr, 0U, 0.5, nullptr);
  EXPECT_EQ(percentile.failure.status, VCPULSE_INVALID_ARGUMENT);
}

TEST(LibraryQueries, WithoutCountersOnlyTheirQuestionsAreNotPossible) {
  DrawnRecording drawn;
  drawn.Draw("%HHNN");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Share(timeline, VCPULSE_BAND_SPINNING).failure.status, VCPULSE_NOT_POSSIBLE);
  EXPECT_EQ(Share(timeline, VCPULSE_BAND_HALTED).failure.status, VCPULSE_OK);
}

TEST(LibraryQueries, AnIpcThatNothingTellsIsNotPossible) {
  DrawnRecording drawn;
  drawn.Draw("HHHH");
  const Answer ipc = Ask(vcpulse_ipc_percentile, Open(drawn.Finish()), nullptr, 0U, 50.0, nullptr);
  EXPECT_EQ(ipc.failure.status, VCPULSE_NOT_POSSIBLE);
  EXPECT_THAT(ipc.failure.message, HasSubstr("ipc"));
}

// A struct of an older release ends earlier: nothing is written beyond what its size says.
TEST(LibraryQueries, BoundsOfAnOlderReleaseGetTheFieldsTheyHave) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPHHHUU");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_bounds bounds = {offsetof(vcpulse_bounds, ticks), 0, 0, 77, 77, 77};
  ASSERT_EQ(
      vcpulse_share(timeline.get(), nullptr, 0, VCPULSE_BAND_PRODUCTIVE, nullptr, &bounds, nullptr),
      VCPULSE_OK);
  EXPECT_EQ(bounds.size, offsetof(vcpulse_bounds, ticks));
  EXPECT_NEAR(bounds.high, 0.7, 1e-6);
  EXPECT_EQ(bounds.ticks, 77U);
  vcpulse_bounds unset = {};
  EXPECT_EQ(
      vcpulse_share(timeline.get(), nullptr, 0, VCPULSE_BAND_PRODUCTIVE, nullptr, &unset, nullptr),
      VCPULSE_INVALID_ARGUMENT);
}

struct Checked {
  vcpulse_status status = VCPULSE_OK;
  vcpulse_outcome outcome = VCPULSE_SKIP;
  std::string text;
  std::string message;
};

Checked Check(const Timeline& timeline, const char* expression, const char* phase = nullptr,
              const vcpulse_limits* limits = nullptr) {
  Checked checked;
  vcpulse_error* error = nullptr;
  char* text = nullptr;
  checked.status =
      vcpulse_check(timeline.get(), expression, phase, limits, &checked.outcome, &text, &error);
  if (text != nullptr) checked.text = text;
  checked.message = vcpulse_error_message(error);
  vcpulse_text_free(text);
  vcpulse_error_free(error);
  return checked;
}

TEST(LibraryCheck, EachOutcomeComesWithItsReason) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPPPPPPPPPP[b]SSSSSSSSSSSS[c]PPPPPPUUUUUU");
  const Timeline timeline = Open(drawn.Finish());
  const char* const expression = "vcpu=*: productive >= 80%";
  EXPECT_EQ(Check(timeline, expression, "a").outcome, VCPULSE_PASS);
  const Checked fail = Check(timeline, expression, "b");
  EXPECT_EQ(fail.outcome, VCPULSE_FAIL);
  EXPECT_THAT(fail.text, ::testing::StartsWith("FAIL VM guest1 vCPU 0: "));
  EXPECT_EQ(Check(timeline, expression, "c").outcome, VCPULSE_INCONCLUSIVE);
  EXPECT_EQ(Check(timeline, expression, "never").outcome, VCPULSE_INCONCLUSIVE);
}

TEST(LibraryCheck, WithoutCountersItSkips) {
  DrawnRecording drawn;
  drawn.Draw("%HHHHHHHHHHHH");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Check(timeline, "spinning <= 5%").outcome, VCPULSE_SKIP);
  EXPECT_EQ(Check(timeline, "halted >= 90%").outcome, VCPULSE_PASS);
}

TEST(LibraryCheck, AMistakeIsToldWithItsColumn) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Checked wrong = Check(Open(drawn.Finish()), "vcpu=0: busy >= 80%");
  EXPECT_EQ(wrong.status, VCPULSE_INVALID_ARGUMENT);
  EXPECT_THAT(wrong.message, HasSubstr("column 9"));
  EXPECT_EQ(wrong.text, "");
}

TEST(LibraryCheck, LimitsSayWhatIsEnough) {
  DrawnRecording drawn;
  drawn.Draw("SSPPPP");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Check(timeline, "productive >= 90%").outcome, VCPULSE_INCONCLUSIVE);  // 6 ticks
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  limits.min_ticks = 4;
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome, VCPULSE_FAIL);
  limits.skip_first_ns = 200'000'000;
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome, VCPULSE_PASS);
  limits.min_ticks = 0;
  // An older release's struct has no min_ticks: it is 10.
  limits.size = offsetof(vcpulse_limits, min_ticks);
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome, VCPULSE_INCONCLUSIVE);
}

TEST(LibraryCheck, LimitsThatMakeNoSenseAreRefused) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  limits.min_measured = 1.5;
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status, VCPULSE_INVALID_ARGUMENT);
  limits = VCPULSE_LIMITS_INIT;
  limits.skip_first_ns = -1;
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status, VCPULSE_INVALID_ARGUMENT);
  limits = {};
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status, VCPULSE_INVALID_ARGUMENT);
}

// What a callback saw, copied.
struct Seen {
  std::vector<std::string> lines;
  std::map<std::string, std::optional<uint64_t>> counts;  // of the last tick
  std::optional<double> ipc;
  std::optional<uint64_t> run_delay_ns;
  size_t stop_after = 1000;
};

int Take(const vcpulse_record* record, void* user) {
  Seen& seen = *static_cast<Seen*>(user);
  std::string line = std::to_string(record->kind);
  if (record->vm != nullptr) line += std::string(" ") + record->vm;
  if (record->kind == VCPULSE_TICK) {
    line += "/" + std::to_string(record->vcpu) + " " + std::to_string(record->band) + " " +
            (record->rule == nullptr ? "-" : record->rule) +
            (record->starved != nullptr && *record->starved != 0 ? " starved" : "");
    seen.counts.clear();
    for (size_t i = 0; i < record->event_count; ++i) {
      const uint64_t* count = record->event_counts[i];
      seen.counts[record->event_names[i]] = count ? std::optional(*count) : std::nullopt;
      EXPECT_EQ(record->event_shares[i], count == nullptr ? 0.0 : 1.0);
    }
    seen.ipc = record->ipc == nullptr ? std::nullopt : std::optional(*record->ipc);
    seen.run_delay_ns =
        record->run_delay_ns == nullptr ? std::nullopt : std::optional(*record->run_delay_ns);
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
  return vcpulse_for_each_record(timeline.get(), Take, &seen, nullptr);
}

TEST(LibraryRecords, ComeInOrderAndFlat) {
  DrawnRecording drawn;
  drawn.waited_percent = 20;
  drawn.Draw("[a]Ps!");
  Seen seen;
  ASSERT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_OK);
  EXPECT_THAT(seen.lines, ElementsAre("2 a", "1 guest1/0 3 ipc-high",
                                      "1 guest1/0 2 ipc-low starved", "4 guest1 vm-ended"));
  EXPECT_EQ(seen.counts["cycles"], 100'000'000U);
  EXPECT_EQ(seen.counts["instructions"], 50'000'000U);
  EXPECT_EQ(seen.ipc, 0.5);
  EXPECT_EQ(seen.run_delay_ns, 20'000'000U);
}

TEST(LibraryRecords, WhatWasNotMeasuredIsNull) {
  DrawnRecording drawn;
  drawn.scheduler_times = false;
  drawn.Draw("%?N");
  Seen seen;
  ASSERT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_OK);
  EXPECT_THAT(seen.lines, ElementsAre("1 guest1/0 0 -", "1 guest1/0 4 no-counters"));
  EXPECT_EQ(seen.ipc, std::nullopt);
  EXPECT_EQ(seen.run_delay_ns, std::nullopt);
}

TEST(LibraryRecords, ACallbackThatWantsNoMoreEndsItWithoutAnError) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPP");
  Seen seen{.stop_after = 2};
  EXPECT_EQ(ForEach(Open(drawn.Finish()), seen), VCPULSE_OK);
  EXPECT_THAT(seen.lines, testing::SizeIs(2));
}

TEST(LibraryRecords, AFileThatIsGoneIsAnError) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const std::string path = drawn.Finish();
  const Timeline timeline = Open(path);
  std::filesystem::remove(path);
  Seen seen;
  EXPECT_EQ(ForEach(timeline, seen), VCPULSE_NOT_FOUND);
}

TEST(LibraryRecords, AnExceptionOfACallbackIsAnErrorWithItsWords) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_error* error = nullptr;
  const auto throwing = [](const vcpulse_record*, void*) -> int {
    throw std::runtime_error("of the callback");
  };
  EXPECT_EQ(vcpulse_for_each_record(timeline.get(), throwing, nullptr, &error), VCPULSE_INTERNAL);
  EXPECT_STREQ(vcpulse_error_message(error), "of the callback");
  vcpulse_error_free(error);
  EXPECT_EQ(vcpulse_for_each_record(timeline.get(), nullptr, nullptr, nullptr),
            VCPULSE_INVALID_ARGUMENT);
}

}  // namespace

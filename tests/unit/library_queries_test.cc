// What queries and checks answer through the C API, of timelines drawn by hand: every answer can be
// worked out on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "monitor/library/include/vcpulse.h"
#include "tests/unit/drawn_recording.h"
#include "tests/unit/opened_timeline.h"

namespace vcpulse::library {
namespace {

using check::DrawnRecording;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace vcpulse::library

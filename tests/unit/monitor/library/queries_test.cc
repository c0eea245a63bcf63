// What queries and checks answer through the C API, of timelines drawn by hand: every answer can be
// worked out on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "monitor/library/include/vcpulse.h"
#include "tests/unit/fixtures/drawn_recording.h"
#include "tests/unit/monitor/library/opened_timeline.h"

namespace vcpulse::library {
namespace {

using check::DrawnRecording;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

// Of the last call that failed.
struct Failure {
  vcpulse_status status = VCPULSE_STATUS_OK;
  std::string message;
};

struct Answer {
  vcpulse_bounds bounds = VCPULSE_BOUNDS_INIT;
  Failure failure;
};

Answer Ask(const Timeline& timeline, const char* quantity, const char* phase = nullptr,
           const char* vm = nullptr, uint32_t vcpu = 0) {
  Answer answer;
  vcpulse_error* error = nullptr;
  answer.failure.status =
      vcpulse_timeline_query(timeline.get(), vm, vcpu, quantity, phase, &answer.bounds, &error);
  answer.failure.message = vcpulse_error_message(error);
  EXPECT_EQ(vcpulse_error_code(error), answer.failure.status);
  vcpulse_error_free(error);
  return answer;
}

void ExpectBounds(const Answer& answer, double low, double high) {
  EXPECT_EQ(answer.failure.status, VCPULSE_STATUS_OK) << answer.failure.message;
  EXPECT_THAT(answer.bounds.low, DoubleNear(low, 1e-6));
  EXPECT_THAT(answer.bounds.high, DoubleNear(high, 1e-6));
}

TEST(LibraryQueries, UnknownTimeMakesBounds) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPHHHUU");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Ask(timeline, "productive"), 0.5, 0.7);
  ExpectBounds(Ask(timeline, "halted"), 0.3, 0.5);
  ExpectBounds(Ask(timeline, "spinning"), 0, 0.2);
  const Answer share = Ask(timeline, "productive");
  EXPECT_EQ(share.bounds.ticks, 10U);  // UNKNOWN is a verdict too
  EXPECT_EQ(share.bounds.judged_ns, 1'000'000'000);
  EXPECT_EQ(share.bounds.unknown_ns, 200'000'000);
}

TEST(LibraryQueries, APhaseIsAllOfItsSpans) {
  DrawnRecording drawn;
  drawn.Draw("SSSSS[a]PPPP[b]HHHH[a]HHHH[c]S");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Ask(timeline, "productive", "a"), 0.5, 0.5);
  ExpectBounds(Ask(timeline, "halted", "b"), 1, 1);
}

TEST(LibraryQueries, LongestIsInNanoseconds) {
  DrawnRecording drawn;
  drawn.Draw("SSSPPSPPPP");
  const Timeline timeline = Open(drawn.Finish());
  ExpectBounds(Ask(timeline, "longest(spinning)"), 300e6, 300e6);
}

TEST(LibraryQueries, PercentilesOfIpcAreWeightedByTime) {
  DrawnRecording drawn;
  drawn.Draw("SSPPPPPPPP");
  const Timeline timeline = Open(drawn.Finish());
  const Answer low = Ask(timeline, "ipc.p10");
  EXPECT_NEAR(low.bounds.low, 0.5, 0.01);
  EXPECT_NEAR(low.bounds.high, 0.5, 0.01);
  const Answer middle = Ask(timeline, "ipc.p50");
  EXPECT_NEAR(middle.bounds.low, 2, 0.02);
}

TEST(LibraryQueries, ResidencyIsTimeInTheGuest) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPPPPRR");
  ExpectBounds(Ask(Open(drawn.Finish()), "residency"), 0.9, 0.9);
}

TEST(LibraryQueries, GapsAreOfTheWholeVm) {
  DrawnRecording drawn;
  drawn.Draw("PPPP..PPPP");
  ExpectBounds(Ask(Open(drawn.Finish()), "gaps", nullptr, nullptr, 7), 0.2, 0.2);
}

TEST(LibraryQueries, StarvedIsAShareOfItsOwn) {
  DrawnRecording drawn;
  drawn.Draw("PPPppPPPPP");
  ExpectBounds(Ask(Open(drawn.Finish()), "starved"), 0.2, 0.2);
}

TEST(LibraryQueries, TheOnlyVmNeedsNoNameAndSeveralDo) {
  DrawnRecording drawn;
  drawn.Begin(1, {.vcpus = {0}});
  drawn.Begin(2, {.vcpus = {0, 1}});
  drawn.Draw({{1, {"PPPP"}}, {2, {"HHHH", "HHHH"}}});
  const Timeline timeline = Open(drawn.Finish());
  const Answer none = Ask(timeline, "halted");
  EXPECT_EQ(none.failure.status, VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(none.failure.message, HasSubstr("guest1 is 1001, guest2 is 1002"));
  // Only one VM has a vCPU 1: a query that happens to fit one only is no better.
  const Answer one = Ask(timeline, "halted", nullptr, nullptr, 1);
  EXPECT_EQ(one.failure.status, VCPULSE_STATUS_INVALID_ARGUMENT);
  ExpectBounds(Ask(timeline, "halted", nullptr, "guest2"), 1, 1);
  ExpectBounds(Ask(timeline, "halted", nullptr, "1001"), 0, 0);
}

TEST(LibraryQueries, WhatNeverCameIsNotFound) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPP");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Ask(timeline, "halted", "b").failure.status, VCPULSE_STATUS_NOT_FOUND);
  EXPECT_EQ(Ask(timeline, "halted", nullptr, "no").failure.status, VCPULSE_STATUS_NOT_FOUND);
  EXPECT_EQ(Ask(timeline, "halted", nullptr, nullptr, 7).failure.status, VCPULSE_STATUS_NOT_FOUND);
}

TEST(LibraryQueries, WhatCannotBeAskedIsRefused) {
  DrawnRecording drawn;
  drawn.Draw("PPPP");
  const Timeline timeline = Open(drawn.Finish());
  const Answer none = Ask(timeline, "none");
  EXPECT_EQ(none.failure.status, VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(none.failure.message, HasSubstr("quantity: column 1: 'none' is none of halted"));
  for (const char* quantity :
       {"", "ipc", "ipc.p0.5", "halted <= 5%", "vcpu=0: halted", "run_share"}) {
    EXPECT_EQ(Ask(timeline, quantity).failure.status, VCPULSE_STATUS_INVALID_ARGUMENT) << quantity;
  }
  EXPECT_EQ(Ask(timeline, nullptr).failure.message, "quantity is NULL");
}

TEST(LibraryQueries, WithoutCountersOnlyTheirQuestionsAreNotPossible) {
  DrawnRecording drawn;
  drawn.Draw("%HHNN");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Ask(timeline, "spinning").failure.status, VCPULSE_STATUS_NOT_POSSIBLE);
  EXPECT_EQ(Ask(timeline, "halted").failure.status, VCPULSE_STATUS_OK);
}

TEST(LibraryQueries, AnIpcThatNothingTellsIsNotPossible) {
  DrawnRecording drawn;
  drawn.Draw("HHHH");
  const Answer ipc = Ask(Open(drawn.Finish()), "ipc.p50");
  EXPECT_EQ(ipc.failure.status, VCPULSE_STATUS_NOT_POSSIBLE);
  EXPECT_THAT(ipc.failure.message, HasSubstr("ipc"));
}

// A struct of an older release ends earlier: nothing is written beyond what its size says.
TEST(LibraryQueries, BoundsOfAnOlderReleaseGetTheFieldsTheyHave) {
  DrawnRecording drawn;
  drawn.Draw("PPPPPHHHUU");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_bounds bounds = {offsetof(vcpulse_bounds, ticks), 0, 0, 77, 77, 77};
  ASSERT_EQ(
      vcpulse_timeline_query(timeline.get(), nullptr, 0, "productive", nullptr, &bounds, nullptr),
      VCPULSE_STATUS_OK);
  EXPECT_EQ(bounds.size, offsetof(vcpulse_bounds, ticks));
  EXPECT_NEAR(bounds.high, 0.7, 1e-6);
  EXPECT_EQ(bounds.ticks, 77U);
  vcpulse_bounds unset = {};
  EXPECT_EQ(
      vcpulse_timeline_query(timeline.get(), nullptr, 0, "productive", nullptr, &unset, nullptr),
      VCPULSE_STATUS_INVALID_ARGUMENT);
}

struct Checked {
  vcpulse_status status = VCPULSE_STATUS_OK;
  vcpulse_outcome outcome = VCPULSE_OUTCOME_SKIP;
  std::string text;
  std::string message;
};

Checked Check(const Timeline& timeline, const char* expression, const char* phase = nullptr,
              const vcpulse_limits* limits = nullptr) {
  Checked checked;
  vcpulse_error* error = nullptr;
  char* text = nullptr;
  checked.status = vcpulse_timeline_check(timeline.get(), expression, phase, limits,
                                          &checked.outcome, &text, &error);
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
  EXPECT_EQ(Check(timeline, expression, "a").outcome, VCPULSE_OUTCOME_PASS);
  const Checked fail = Check(timeline, expression, "b");
  EXPECT_EQ(fail.outcome, VCPULSE_OUTCOME_FAIL);
  EXPECT_THAT(fail.text, ::testing::StartsWith("FAIL VM guest1 vCPU 0: "));
  EXPECT_EQ(Check(timeline, expression, "c").outcome, VCPULSE_OUTCOME_INCONCLUSIVE);
  EXPECT_EQ(Check(timeline, expression, "never").outcome, VCPULSE_OUTCOME_INCONCLUSIVE);
}

TEST(LibraryCheck, WithoutCountersItSkips) {
  DrawnRecording drawn;
  drawn.Draw("%HHHHHHHHHHHH");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Check(timeline, "spinning <= 5%").outcome, VCPULSE_OUTCOME_SKIP);
  EXPECT_EQ(Check(timeline, "halted >= 90%").outcome, VCPULSE_OUTCOME_PASS);
}

TEST(LibraryCheck, AMistakeIsToldWithItsColumn) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Checked wrong = Check(Open(drawn.Finish()), "vcpu=0: busy >= 80%");
  EXPECT_EQ(wrong.status, VCPULSE_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(wrong.message, HasSubstr("column 9"));
  EXPECT_EQ(wrong.text, "");
}

TEST(LibraryCheck, LimitsSayWhatIsEnough) {
  DrawnRecording drawn;
  drawn.Draw("SSPPPP");
  const Timeline timeline = Open(drawn.Finish());
  EXPECT_EQ(Check(timeline, "productive >= 90%").outcome, VCPULSE_OUTCOME_INCONCLUSIVE);  // 6 ticks
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  limits.min_ticks = 4;
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome, VCPULSE_OUTCOME_FAIL);
  limits.skip_first_ns = 200'000'000;
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome, VCPULSE_OUTCOME_PASS);
  limits.min_ticks = 0;
  // An older release's struct has no min_ticks: it is 10.
  limits.size = offsetof(vcpulse_limits, min_ticks);
  EXPECT_EQ(Check(timeline, "productive >= 90%", nullptr, &limits).outcome,
            VCPULSE_OUTCOME_INCONCLUSIVE);
}

TEST(LibraryCheck, LimitsSayWhatIsTrusted) {
  DrawnRecording drawn;
  drawn.Begin(1, {.classifier = "ipc-bands"});
  drawn.Draw("PPPPPPPPPPPP");
  const Timeline timeline = Open(drawn.Finish());
  const char* const expression = "productive >= 90%";
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  EXPECT_EQ(Check(timeline, expression, nullptr, &limits).outcome, VCPULSE_OUTCOME_INCONCLUSIVE);
  EXPECT_EQ(Check(timeline, "productive by ipc-bands >= 90%").outcome, VCPULSE_OUTCOME_PASS);
  limits.trust_ipc_bands = 1;
  EXPECT_EQ(Check(timeline, expression, nullptr, &limits).outcome, VCPULSE_OUTCOME_PASS);
}

TEST(LibraryCheck, LimitsSayWhetherAPassMayStandBesideASkip) {
  DrawnRecording drawn;
  drawn.Begin(1, {.degraded = true});
  drawn.Begin(2, {});
  drawn.Draw({{1, {"NNNNNNNNNNNN"}}, {2, {"PPPPPPPPPPPP"}}});
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  EXPECT_EQ(Check(timeline, "spinning <= 5%", nullptr, &limits).outcome, VCPULSE_OUTCOME_SKIP);
  limits.allow_skip = 1;
  EXPECT_EQ(Check(timeline, "spinning <= 5%", nullptr, &limits).outcome, VCPULSE_OUTCOME_PASS);
}

TEST(LibraryCheck, LimitsThatMakeNoSenseAreRefused) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Open(drawn.Finish());
  vcpulse_limits limits = VCPULSE_LIMITS_INIT;
  limits.min_measured = 1.5;
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status,
            VCPULSE_STATUS_INVALID_ARGUMENT);
  limits = VCPULSE_LIMITS_INIT;
  limits.skip_first_ns = -1;
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status,
            VCPULSE_STATUS_INVALID_ARGUMENT);
  limits = {};
  EXPECT_EQ(Check(timeline, "gaps <= 1%", nullptr, &limits).status,
            VCPULSE_STATUS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace vcpulse::library

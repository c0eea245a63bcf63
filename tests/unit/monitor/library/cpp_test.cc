// vcpulse.hpp and the matchers of vcpulse_gtest.hpp, as a user's test includes them.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vcpulse.hpp>
#include <vcpulse_gtest.hpp>

#include "tests/unit/fixtures/drawn_recording.h"

namespace {

using std::chrono_literals::operator""ms;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using vcpulse::Band;
using vcpulse::Meets;
using vcpulse::SurelyAtLeast;
using vcpulse::SurelyAtMost;
using vcpulse::Timeline;
using vcpulse::check::DrawnRecording;

static_assert(std::is_nothrow_move_constructible_v<Timeline>);
static_assert(!std::is_copy_constructible_v<Timeline>);
static_assert(!std::is_copy_constructible_v<vcpulse::Recording>);

// What the matcher says of a value.
template <typename Matcher, typename Value>
std::string Explain(const Matcher& matcher, const Value& value) {
  testing::StringMatchResultListener listener;
  testing::ExplainMatchResult(matcher, value, &listener);
  return listener.str();
}

TEST(LibraryCpp, AsksATimeline) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPPPHHHUU[b]SS");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  EXPECT_THAT(timeline.phases(), ElementsAre("a", "b"));
  ASSERT_EQ(timeline.vms().size(), 1U);
  EXPECT_EQ(timeline.vms()[0].name, "guest1");
  EXPECT_THAT(timeline.vms()[0].vcpus, ElementsAre(0U));
  EXPECT_EQ(timeline.duration(), 1200ms);
  EXPECT_EQ(timeline.host(), "host1");
  EXPECT_FALSE(timeline.no_counters_reason());
  EXPECT_FALSE(timeline.damage());
  const vcpulse::Bounds share = timeline.Share(0, Band::kProductive, "a");
  EXPECT_NEAR(share.low, 0.5, 1e-6);
  EXPECT_NEAR(share.high, 0.7, 1e-6);
  EXPECT_EQ(share.judged, 1000ms);
  EXPECT_EQ(share.unknown, 200ms);
  EXPECT_NEAR(timeline.Query({"guest1", 0}, "longest(halted)").low, 300e6, 1);
  EXPECT_NEAR(timeline.Query(0, "ipc.p50", "b").low, 0.5, 0.01);
  EXPECT_NEAR(timeline.Query(0, "residency", "b").low, 1, 0.01);
  EXPECT_NEAR(timeline.Query(0, "starved").high, 0, 1e-6);
  EXPECT_NEAR(timeline.Gaps().high, 0, 1e-6);
}

TEST(LibraryCpp, AFailureIsAnErrorWithItsCode) {
  try {
    Timeline::Open("/no/such/file");
    FAIL() << "it was opened";
  } catch (const vcpulse::Error& error) {
    EXPECT_EQ(error.code(), VCPULSE_STATUS_NOT_FOUND);
    EXPECT_THAT(error.what(), HasSubstr("/no/such/file"));
  }
  EXPECT_THROW(vcpulse::Options().Interval(0ms), vcpulse::Error);
  EXPECT_THROW(vcpulse::Recording::Attach(vcpulse::Options().Vm("no-such-vm")), vcpulse::Error);
}

TEST(LibraryCpp, RecordsAreHandedOverUntilTheCallbackHasEnough) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPP");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  int all = 0;
  timeline.ForEachRecord([&](const vcpulse_record&) { return ++all, true; });
  EXPECT_EQ(all, 5);
  int some = 0;
  timeline.ForEachRecord([&](const vcpulse_record&) { return ++some < 2; });
  EXPECT_EQ(some, 2);
}

TEST(LibraryCpp, AnExceptionOfACallbackComesThrough) {
  DrawnRecording drawn;
  drawn.Draw("PP");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  EXPECT_THROW(
      timeline.ForEachRecord([](const vcpulse_record&) -> bool { throw std::out_of_range("x"); }),
      std::out_of_range);
}

TEST(LibraryMatchers, MeetsMatchesAPassAlone) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPPPPPPPPPP[b]SSSSSSSSSSSS[c]PPPPPPUUUUUU");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  const Meets meets("vcpu=*: productive >= 80%");
  EXPECT_THAT(timeline, meets.During("a"));
  EXPECT_THAT(timeline, Not(meets.During("b")));
  EXPECT_THAT(timeline, Not(meets.During("c")));
  EXPECT_THAT(Explain(meets.During("b"), timeline),
              HasSubstr("which is FAIL:\nFAIL VM guest1 vCPU 0: "));
  EXPECT_THAT(Explain(meets.During("c"), timeline), HasSubstr("which is INCONCLUSIVE:\n"));
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(timeline, Not(Meets("productive"))),
                          "\"productive\" cannot be judged: column");
  EXPECT_EQ(testing::DescribeMatcher<const Timeline&>(meets.During("a")),
            "meets \"vcpu=*: productive >= 80%\" in phase \"a\"");
}

TEST(LibraryMatchers, SurelyFailsMatchesAFailAlone) {
  DrawnRecording drawn;
  drawn.Draw("[a]PPPPPPPPPPPP[b]SSSSSSSSSSSS[c]PPPPPPUUUUUU");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  const Meets fails = vcpulse::SurelyFails("vcpu=*: productive >= 80%");
  EXPECT_THAT(timeline, Not(fails.During("a")));
  EXPECT_THAT(timeline, fails.During("b"));
  EXPECT_THAT(timeline, Not(fails.During("c")));
  EXPECT_EQ(testing::DescribeMatcher<const Timeline&>(fails),
            "surely fails \"vcpu=*: productive >= 80%\"");
}

TEST(LibraryMatchers, WithoutCountersMeetsDoesNotMatch) {
  DrawnRecording drawn;
  drawn.Draw("%HHHHHHHHHHHH");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  EXPECT_THAT(timeline, Not(Meets("spinning <= 5%")));
  EXPECT_THAT(Explain(Meets("spinning <= 5%"), timeline), HasSubstr("which is SKIP"));
}

TEST(LibraryMatchers, LimitsOfACheckCanBeGiven) {
  DrawnRecording drawn;
  drawn.Draw("PPPP");
  const Timeline timeline = Timeline::Open(drawn.Finish());
  EXPECT_THAT(timeline, Not(Meets("productive >= 80%")));
  vcpulse::Limits limits;
  limits.min_ticks = 3;
  EXPECT_THAT(timeline, Meets("productive >= 80%").Within(limits));
}

TEST(LibraryMatchers, SurelyMeansWhateverTheUnknownTimeWas) {
  const vcpulse::Bounds bounds{0.5, 0.75, 8, 4000ms, 1000ms};
  EXPECT_THAT(bounds, SurelyAtLeast(0.5));
  EXPECT_THAT(bounds, Not(SurelyAtLeast(0.6)));
  EXPECT_THAT(bounds, Not(SurelyAtLeast(0.8)));
  EXPECT_THAT(bounds, SurelyAtMost(0.75));
  EXPECT_THAT(bounds, Not(SurelyAtMost(0.6)));
  EXPECT_THAT(bounds, Not(SurelyAtMost(0.4)));
  EXPECT_THAT(Explain(SurelyAtLeast(0.6), bounds),
              "which is INCONCLUSIVE: 1 s of 4 s are not known");
  EXPECT_EQ(Explain(SurelyAtLeast(0.8), bounds), "which surely is not");
  EXPECT_EQ(Explain(SurelyAtMost(0.4), bounds), "which surely is not");
  EXPECT_EQ(testing::PrintToString(bounds), "between 0.5 and 0.75 (8 ticks)");
  EXPECT_EQ(testing::DescribeMatcher<const vcpulse::Bounds&>(SurelyAtLeast(0.5)),
            "surely is at least 0.5");
}

}  // namespace

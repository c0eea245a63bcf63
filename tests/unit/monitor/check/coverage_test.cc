#include "monitor/check/coverage.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "monitor/check/tally.h"
#include "monitor/check/timetable.h"

namespace vcpulse::check {
namespace {

const Observation kSeen;

// "|10-20 ?20-30": '|' where a piece begins, '?' where no sample covers it.
std::string Text(std::span<const Part> parts) {
  std::string text;
  for (const Part& part : parts) {
    absl::StrAppend(&text, text.empty() ? "" : " ", part.begins ? "|" : "",
                    part.observation == nullptr ? "?" : "", part.when.from_ns, "-",
                    part.when.to_ns);
  }
  return text;
}

TEST(Coverage, GivesBackThePiecesPartByPart) {
  Coverage coverage({{10, 40}, {60, 80}});
  EXPECT_EQ(Text(coverage.Take({0, 5}, kSeen)), "");
  EXPECT_EQ(Text(coverage.Take({5, 20}, kSeen)), "|10-20");
  EXPECT_EQ(Text(coverage.Take({20, 30}, kSeen)), "20-30");
  EXPECT_EQ(Text(coverage.Take({35, 65}, kSeen)), "?30-35 35-40 |60-65");
  EXPECT_EQ(Text(coverage.Finish()), "?65-80");
  EXPECT_EQ(Text(coverage.Finish()), "");
}

TEST(Coverage, IsUnknownWithoutASample) {
  Coverage coverage({{10, 40}, {40, 80}});
  EXPECT_EQ(Text(coverage.Finish()), "|?10-40 ?40-80");
  EXPECT_EQ(Text(Coverage({}).Finish()), "");
}

TEST(Coverage, RunsOnOverPiecesThatTouch) {
  Coverage coverage({{10, 40}, {40, 80}});
  EXPECT_EQ(Text(coverage.Take({20, 60}, kSeen)), "|?10-20 20-40 40-60");
}

TEST(Coverage, EndsAtTheEndOfAPiece) {
  Coverage coverage({{10, 40}, {60, 80}});
  EXPECT_EQ(Text(coverage.Take({10, 40}, kSeen)), "|10-40");
  EXPECT_EQ(Text(coverage.Take({40, 60}, kSeen)), "");
  EXPECT_EQ(Text(coverage.Take({60, 80}, kSeen)), "|60-80");
  EXPECT_EQ(Text(coverage.Finish()), "");
}

TEST(Coverage, GivesNoTimeTwice) {
  Coverage coverage({{10, 80}});
  EXPECT_EQ(Text(coverage.Take({10, 40}, kSeen)), "|10-40");
  EXPECT_EQ(Text(coverage.Take({20, 50}, kSeen)), "40-50");
  EXPECT_EQ(Text(coverage.Take({0, 30}, kSeen)), "");
  EXPECT_EQ(Text(coverage.Take({50, 60}, kSeen)), "50-60");
}

TEST(Coverage, PassesOverWhatGoesBackwards) {
  Coverage coverage({{10, 80}});
  EXPECT_EQ(Text(coverage.Take({70, 20}, kSeen)), "");
  EXPECT_EQ(Text(coverage.Take({30, 30}, kSeen)), "");
  EXPECT_EQ(Text(coverage.Take({10, 20}, kSeen)), "|10-20");
  EXPECT_EQ(Text(coverage.Take({20, 21}, kSeen)), "20-21");
}

TEST(Coverage, TellsWhoseObservationItIs) {
  const Observation other;
  Coverage coverage({{10, 80}});
  EXPECT_EQ(coverage.Take({10, 20}, kSeen).front().observation, &kSeen);
  EXPECT_EQ(coverage.Take({20, 30}, other).front().observation, &other);
}

TEST(Spans, JoinedAreInOrderAndApart) {
  EXPECT_EQ(
      Joined({{50, 60}, {10, 20}, {20, 30}, {55, 58}, {59, 70}, {40, 40}, {35, 33}, {80, 81}}),
      (std::vector<TimeRange>{{10, 30}, {50, 70}, {80, 81}}));
  EXPECT_EQ(Joined({}), std::vector<TimeRange>());
}

TEST(Spans, CommonIsWhatLiesInBoth) {
  using Stretches = std::vector<TimeRange>;
  const Stretches windows = {{10, 30}, {50, 70}};
  EXPECT_EQ(Common(Stretches{{0, 100}}, windows), windows);
  EXPECT_EQ(Common(Stretches{{20, 60}}, windows), (Stretches{{20, 30}, {50, 60}}));
  EXPECT_EQ(Common(Stretches{{15, 20}, {20, 25}, {25, 55}}, windows),
            (Stretches{{15, 20}, {20, 25}, {25, 30}, {50, 55}}));
  EXPECT_EQ(Common(Stretches{{30, 50}, {70, 90}}, windows), Stretches());
  EXPECT_EQ(Common(Stretches{{0, 10}, {12, 14}}, windows), (Stretches{{12, 14}}));
  EXPECT_EQ(Common(Stretches{{20, 20}}, windows), Stretches());
  EXPECT_EQ(Common(Stretches{{20, 21}, {22, 24}}, windows), (Stretches{{20, 21}, {22, 24}}));
  EXPECT_EQ(Common(Stretches(), windows), Stretches());
  EXPECT_EQ(TotalLength(windows), 40);
}

TEST(Spans, InstantsBeyondReasonAreCut) {
  EXPECT_EQ(WithinReason(7), 7);
  EXPECT_EQ(WithinReason(INT64_MAX), (int64_t{1} << 62) - 1);
  EXPECT_EQ(WithinReason(INT64_MIN), 1 - (int64_t{1} << 62));
}

constexpr int64_t kMs_ns = 1'000'000;

// Parts of `ms` each, with these means, from `from_ms` on, one piece.
void AddParts(WorstWindow& worst, int64_t from_ms, int64_t ms, const std::vector<double>& means) {
  for (size_t i = 0; i < means.size(); ++i) {
    const int64_t from_ns = (from_ms + ms * static_cast<int64_t>(i)) * kMs_ns;
    worst.Add({from_ns, from_ns + ms * kMs_ns}, i == 0, means[i] * 10, 10);
  }
}

ObservedRange Window(int64_t from_ms, int64_t to_ms, double observed) {
  return {.when = {from_ms * kMs_ns, to_ms * kMs_ns}, .observed = observed};
}

TEST(WorstWindow, IsTheTenTicksWithTheHighestMean) {
  WorstWindow worst(true);
  AddParts(worst, 0, 100, {0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0});
  EXPECT_EQ(worst.Finish(), Window(1000, 2000, 0.7));
}

TEST(WorstWindow, OrTheLowest) {
  WorstWindow worst(false);
  AddParts(worst, 0, 100, {1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(worst.Finish(), Window(1000, 2000, 0.3));
}

TEST(WorstWindow, IsTheFirstOfTwo) {
  WorstWindow worst(true);
  AddParts(worst, 0, 100, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(worst.Finish(), Window(0, 1000, 0.1));
}

TEST(WorstWindow, TakesShortTicksTogether) {
  WorstWindow worst(true);
  std::vector<double> means(200, 0);
  for (size_t i = 100; i < 200; ++i) means[i] = 1;
  AddParts(worst, 0, 10, means);
  EXPECT_EQ(worst.Finish(), Window(1000, 2000, 1));
}

TEST(WorstWindow, TakesTicksThatComeALittleEarly) {
  WorstWindow worst(true);
  std::vector<double> means(20, 0);
  for (size_t i = 0; i < 10; ++i) means[i] = 1;
  AddParts(worst, 0, 95, means);
  EXPECT_EQ(worst.Finish(), Window(0, 950, 1));
}

TEST(WorstWindow, ReachesOverNoEndOfAPiece) {
  WorstWindow worst(true);
  AddParts(worst, 0, 100, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
  AddParts(worst, 1200, 100, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(worst.Finish(), Window(200, 1200, 0.2));
}

TEST(WorstWindow, OfAShortPieceIsAllOfIt) {
  WorstWindow worst(true);
  AddParts(worst, 0, 100, std::vector<double>(10, 0.4));
  AddParts(worst, 1000, 70, {1, 0});
  EXPECT_EQ(worst.Finish(), Window(1000, 1140, 0.5));
}

TEST(WorstWindow, HasAMeanFromTheFirstNanosecondOn) {
  WorstWindow worst(false);
  worst.Add({0, 1}, true, 3, 1);
  EXPECT_EQ(worst.Finish(), (ObservedRange{.when = {0, 1}, .observed = 3}));
}

TEST(WorstWindow, IsNothingWhereNothingHasAWeight) {
  WorstWindow worst(false);
  EXPECT_EQ(worst.Finish(), std::nullopt);
  worst.Add({0, 100 * kMs_ns}, true, 0, 0);
  EXPECT_EQ(worst.Finish(), std::nullopt);
}

}  // namespace
}  // namespace vcpulse::check

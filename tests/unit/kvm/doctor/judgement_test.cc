// Counts against what they had to be.
#include "kvm/doctor/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace vcpulse::kvm::doctor {
namespace {

using State = Finding::State;
using ::testing::HasSubstr;

Finding FindingOf(const Judgement& judgement) {
  return judgement.ToFinding("loop", "ran it", "a loop: ", "do not");
}

// So many cycles in 10 ns, of which the counters ran a part, and no instruction.
Counts CountsOf(uint64_t cycles, uint64_t running_ns) {
  const std::vector<Event> events = {{.name = "cycles"}, {.name = "instructions"}};
  Counts counts;
  counts.Add({.counts = {0, 0}},
             {.time_enabled_ns = 10, .time_running_ns = running_ns, .counts = {cycles, 0}}, events);
  return counts;
}

State StateOf(uint64_t expected, uint64_t counted) {
  Judgement judgement;
  judgement.Compare("", "instructions", expected, counted);
  return FindingOf(judgement).state;
}

TEST(Judgement, ACountMayDifferBy100) {
  for (const uint64_t expected : {1'000U, 10'000'000U}) {
    EXPECT_EQ(StateOf(expected, expected), State::kOk);
    EXPECT_EQ(StateOf(expected, expected + 100), State::kOk);
    EXPECT_EQ(StateOf(expected, expected + 101), State::kFail);
    EXPECT_EQ(StateOf(expected, expected - 100), State::kOk);
    EXPECT_EQ(StateOf(expected, expected - 101), State::kFail);
  }
}

TEST(Judgement, OfManyItMayDifferBy10Ppm) {
  EXPECT_EQ(StateOf(100'000'000, 100'001'000), State::kOk);
  EXPECT_EQ(StateOf(100'000'000, 100'001'001), State::kFail);
  EXPECT_EQ(StateOf(100'000'000, 99'999'000), State::kOk);
  EXPECT_EQ(StateOf(100'000'000, 99'998'999), State::kFail);
}

// However small the number that it had to be.
TEST(Judgement, OneThatStaysZeroFails) {
  Judgement judgement;
  judgement.Compare("vCPU 1: ", "branches", 50, 0);
  const Finding finding = FindingOf(judgement);
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_EQ(finding.answered,
            "a loop: vCPU 1: 50 branches expected, counted 0: it stays 0 for guests");
  EXPECT_EQ(finding.fix, "do not");
}

TEST(Judgement, OneWrongCountOfManyFails) {
  Judgement judgement;
  judgement.Compare("", "instructions", 4'000'002, 4'000'002);
  judgement.Compare("", "branches", 1'000'000, 1'000'500);
  judgement.Compare("", "pauses", 7, 7);
  const Finding finding = FindingOf(judgement);
  EXPECT_EQ(finding.state, State::kFail);
  EXPECT_EQ(finding.answered,
            "a loop: 4,000,002 instructions expected, counted exactly; 1,000,000 branches "
            "expected, counted 1,000,500 (+500); 7 pauses expected, counted exactly");
}

TEST(Judgement, OfNothingComparedIsNotOk) {
  Judgement judgement;
  judgement.TakeTimes(CountsOf(5, /*running_ns=*/10));
  EXPECT_EQ(FindingOf(judgement).state, State::kUnknown);
  EXPECT_EQ(FindingOf(judgement).answered, "no event was counted whose number is known");
  judgement.CompareNothing("a halt", Counts{});
  EXPECT_EQ(FindingOf(judgement).state, State::kUnknown);
}

TEST(Judgement, OfCountsThatARivalTookIsUnknown) {
  Judgement judgement;
  judgement.TakeTimes(CountsOf(3, /*running_ns=*/10));
  EXPECT_TRUE(judgement.whole());
  EXPECT_TRUE(judgement.ran());
  judgement.TakeTimes(CountsOf(3, /*running_ns=*/4));
  judgement.Compare("", "instructions", 3, 3);
  EXPECT_FALSE(judgement.whole());
  EXPECT_TRUE(judgement.ran());
  EXPECT_EQ(FindingOf(judgement).state, State::kUnknown);
  EXPECT_THAT(FindingOf(judgement).answered, HasSubstr("end what else uses the PMU"));
  judgement.TakeTimes(CountsOf(0, /*running_ns=*/0));
  EXPECT_FALSE(judgement.ran());
}

TEST(Judgement, OfWhatCouldNotBeTriedIsUnknown) {
  const Finding finding = FindingOf(Judgement(absl::UnavailableError("it hung")));
  EXPECT_EQ(finding.state, State::kUnknown);
  EXPECT_EQ(finding.answered, "it hung");
  EXPECT_EQ(finding.fix, "");
}

// And what is within the slack is said.
TEST(Judgement, NothingIsAtMost100) {
  const auto judge = [](uint64_t cycles) {
    Judgement judgement;
    judgement.CompareNothing("a halt", CountsOf(cycles, 0));
    return judgement.ToFinding("halt", "halted", "", "do not");
  };
  EXPECT_EQ(judge(0).answered, "a halt counted nothing");
  EXPECT_EQ(judge(0).state, State::kOk);
  EXPECT_EQ(judge(100).answered, "a halt counted 100 cycles");
  EXPECT_EQ(judge(100).state, State::kOk);
  EXPECT_EQ(judge(101).state, State::kFail);
}

TEST(Judgement, AClockHasARateThatACpuCanHave) {
  const auto judge = [](double hz, std::optional<double> tsc_hz = std::nullopt) {
    Judgement judgement;
    judgement.CompareRate("ref-cycles", hz, tsc_hz);
    return FindingOf(judgement);
  };
  EXPECT_EQ(judge(1e8).state, State::kOk);
  EXPECT_EQ(judge(0.99e8).state, State::kFail);
  EXPECT_EQ(judge(1e10).state, State::kOk);
  EXPECT_EQ(judge(1.01e10).state, State::kFail);
  EXPECT_EQ(judge(1.01e10).answered, "a loop: ref-cycles at 10.10 GHz, which no CPU has");
  EXPECT_EQ(judge(2e9, 4e9).state, State::kOk);
  EXPECT_EQ(judge(1.9e9, 4e9).state, State::kFail);
  EXPECT_EQ(judge(4.2e9, 4e9).state, State::kOk);
  EXPECT_EQ(judge(4.3e9, 4e9).state, State::kFail);
  EXPECT_EQ(judge(2e9, 4e9).answered, "a loop: ref-cycles at 2.00 GHz of the TSC's 4.00");
}

}  // namespace
}  // namespace vcpulse::kvm::doctor

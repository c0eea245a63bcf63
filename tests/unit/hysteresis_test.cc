#include <gtest/gtest.h>

#include <string>

#include "monitor/core/epoch_classifier.h"

namespace vcpulse::core {
namespace {

constexpr Judgement kHalted{Band::kHalted, Rule::kResidency, 0.99};
constexpr Judgement kSpin{Band::kSpinning, Rule::kPause, 0.95};
constexpr Judgement kWork{Band::kProductive, Rule::kIpcHigh, 0.9};
constexpr Judgement kUnclear{Band::kUnknown, Rule::kUnclear, 0};
constexpr Judgement kStarved{Band::kUnknown, Rule::kStarved, 0.99};

// H halted, S spinning, P productive, U unclear, W waiting (starved): what is shown of each.
std::string Smooth(const std::string& raw) {
  BandHysteresis hysteresis;
  std::string shown;
  for (const char c : raw) {
    const Judgement& judgement = hysteresis.Push(c == 'H'   ? kHalted
                                                 : c == 'S' ? kSpin
                                                 : c == 'P' ? kWork
                                                 : c == 'U' ? kUnclear
                                                            : kStarved);
    shown += judgement == kHalted    ? 'H'
             : judgement == kSpin    ? 'S'
             : judgement == kWork    ? 'P'
             : judgement == kUnclear ? 'U'
                                     : 'W';
  }
  return shown;
}

TEST(Hysteresis, TheFirstWindowIsShown) {
  EXPECT_EQ(Smooth("S"), "S");
  EXPECT_EQ(Smooth("U"), "U");
}

TEST(Hysteresis, AChangeNeedsTwoOfThree) {
  EXPECT_EQ(Smooth("SSSPPP"), "SSSSPP");
  EXPECT_EQ(Smooth("SSSPSPP"), "SSSSSPP");
  EXPECT_EQ(Smooth("SSSPSSPSS"), "SSSSSSSSS");
  EXPECT_EQ(Smooth("PPPUUU"), "PPPPUU");
  EXPECT_EQ(Smooth("UUUSS"), "UUUUS");
}

TEST(Hysteresis, ThreeDifferentOnesChangeNothing) { EXPECT_EQ(Smooth("SSPUPP"), "SSSSPP"); }

// One of the three may be older: P U P.
TEST(Hysteresis, TheTwoNeedNotBeNeighbours) { EXPECT_EQ(Smooth("SSSPUP"), "SSSSSP"); }

TEST(Hysteresis, WhatIsMeasuredIsShownAtOnce) {
  EXPECT_EQ(Smooth("SSSHSSS"), "SSSHSSS");
  EXPECT_EQ(Smooth("PPPWPPP"), "PPPWPPP");
  EXPECT_EQ(Smooth("HHHPHH"), "HHHPHH");
  EXPECT_EQ(Smooth("WH"), "WH");
}

// What lay before it is forgotten: one S after the halt is no second one.
TEST(Hysteresis, AHaltBeginsAnew) { EXPECT_EQ(Smooth("SSHPSPP"), "SSHPPPP"); }

TEST(Hysteresis, AHeldBandKeepsTheRuleThatGaveIt) {
  BandHysteresis hysteresis;
  constexpr Judgement kPoll{Band::kSpinning, Rule::kPollLike, 0.6};
  EXPECT_EQ(hysteresis.Push(kSpin), kSpin);
  EXPECT_EQ(hysteresis.Push(kPoll), kPoll);  // the same band: the newer rule
  EXPECT_EQ(hysteresis.Push(kWork), kPoll);
  EXPECT_EQ(hysteresis.Push(kWork), kWork);
}

TEST(Hysteresis, OnlyWhatNumbersLookLikeIsSmoothed) {
  for (const Rule rule : {Rule::kShort, Rule::kMixed, Rule::kUnclear, Rule::kWeak}) {
    EXPECT_FALSE(IsMeasured({Band::kUnknown, rule, 0})) << ToString(rule);
  }
  for (const Rule rule : {Rule::kStarved, Rule::kPaused, Rule::kNotCounted, Rule::kNoInstructions,
                          Rule::kNoCounters, Rule::kStateUnknown, Rule::kNoResidency}) {
    EXPECT_TRUE(IsMeasured({Band::kUnknown, rule, 0})) << ToString(rule);
  }
  EXPECT_TRUE(IsMeasured(kHalted));
  EXPECT_FALSE(IsMeasured(kSpin));
  EXPECT_FALSE(IsMeasured(kWork));
  EXPECT_TRUE(IsMeasured(Judgement{}));  // nothing was judged yet
}

}  // namespace
}  // namespace vcpulse::core

// Golden rows of the evidence rules: each rule, both sides of each threshold, each absent feature.

#include "monitor/core/evidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace vcpulse::core {

void PrintTo(const Judgement& judgement, std::ostream* out) {
  *out << ToString(judgement.band) << " by " << ToString(judgement.rule) << ", confidence "
       << judgement.confidence;
}

namespace {

constexpr double kFar = 1e9;  // cycles, so that they do not lower the confidence

// Features by their short names in docs/bands.md; what is not set is not measured.
struct Row {
  std::optional<double> ipc{}, b{}, u_b{}, u_m{}, p{}, spread{}, u_l{};
  double cycles = kFar;
  double q = 1;
};

Features Of(const Row& row) {
  Features features{.interval_ns = 100'000'000,
                    .enabled_share = 1,
                    .enabled = true,
                    .running_share = row.q,
                    .residency = 1,
                    .cycles_counted = true,
                    .instructions_counted = true};
  features.Set(Feature::kCycles, row.cycles);
  if (row.ipc) features.Set(Feature::kIpc, *row.ipc);
  if (row.b) features.Set(Feature::kBranchShare, *row.b);
  if (row.u_b) features.Set(Feature::kBranchMisses, *row.u_b);
  if (row.u_m) features.Set(Feature::kCacheMisses, *row.u_m);
  if (row.u_l) features.Set(Feature::kL1dMisses, *row.u_l);
  if (row.p) features.Set(Feature::kPauseShare, *row.p);
  if (row.spread) features.Set(Feature::kIpcSpread, *row.spread);
  return features;
}

// The generic profile without the cut, so that each rule is seen to speak up to its edges.
EvidenceThresholds Uncut() { return {.weak_below = 0}; }

EvidenceThresholds Calibrated(double from, double to) {
  EvidenceThresholds thresholds = Uncut();
  thresholds.spin_ipc[0] = {from, to};
  thresholds.spin_ipcs = 1;
  return thresholds;
}

Judgement Judge(const Row& row, const EvidenceThresholds& thresholds = Uncut()) {
  return EvidenceRules(thresholds).Judge(Of(row));
}

Rule RuleOf(const Row& row, const EvidenceThresholds& thresholds = Uncut()) {
  return Judge(row, thresholds).rule;
}

constexpr double kBelow = 1 - 1e-9;

// A loop that takes no wrong turn and misses nothing, at some IPC.
Row Loop(double ipc) { return {.ipc = ipc, .b = 0.3, .u_b = 0.01, .u_m = 0.01}; }

// What the CPU's own count of PAUSE says comes before all looks.
TEST(Evidence, Rule3PauseNamesASpin) {
  EXPECT_EQ(Judge({.ipc = 2.0, .b = 0.01, .u_b = 5, .u_m = 5, .p = 0.9}),
            (Judgement{Band::kSpinning, Rule::kPause, 0.95}));
  EXPECT_EQ(RuleOf({.p = 0.30}), Rule::kPause);
  EXPECT_EQ(RuleOf({.p = 0.30 * kBelow}), Rule::kMixed);
  EXPECT_EQ(Judge({.ipc = 2.0, .p = 0.10}), (Judgement{Band::kUnknown, Rule::kMixed, 0}));
  EXPECT_EQ(RuleOf({.ipc = 2.0, .p = 0.10 * kBelow}), Rule::kIpcHigh);
}

TEST(Evidence, Rule2FewCyclesSayNothing) {
  EXPECT_EQ(Judge({.ipc = 2.0, .p = 0.9, .cycles = 999'999}),
            (Judgement{Band::kUnknown, Rule::kShort, 0}));
  EXPECT_EQ(RuleOf({.ipc = 2.0, .p = 0.9, .cycles = 1'000'000}), Rule::kPause);
}

TEST(Evidence, Rule4ATightLoopBelowOneInstructionPerCycle) {
  EXPECT_EQ(Judge(Loop(0.7)).band, Band::kSpinning);
  EXPECT_EQ(RuleOf(Loop(0.7)), Rule::kTightLoop);
  Row row = Loop(0.7);
  row.u_b = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.u_b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kTightLoop);
  row.b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.b = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kTightLoop);
  row.u_m = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.u_m = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kTightLoop);
}

// Work on data that its first-level cache does not hold takes no wrong turn either.
TEST(Evidence, ALoopThatMissesTheL1dIsNone) {
  Row matrix = {.ipc = 1.1, .b = 0.14, .u_b = 0.08, .u_m = 0.05, .u_l = 3.8};
  EXPECT_EQ(Judge(matrix),
            (Judgement{Band::kProductive, Rule::kIpcHigh, 0.95 * (0.6 + std::log(1.1))}));
  matrix.ipc = 0.9;
  EXPECT_EQ(Judge(matrix).band, Band::kProductive);
  EXPECT_EQ(RuleOf(matrix), Rule::kL1dMisses);
  for (const double ipc : {0.7, 1.1}) {
    Row row = Loop(ipc);
    row.u_l = 0.50;
    EXPECT_NE(Judge(row).band, Band::kSpinning) << ipc;
    row.u_l = 0.50 * kBelow;
    EXPECT_EQ(Judge(row).band, Band::kSpinning) << ipc;
  }
  Row known = Loop(0.35);
  known.u_l = 0.50;
  EXPECT_EQ(RuleOf(known, Calibrated(0.24, 0.5)), Rule::kUnclear);
  Row chain = Loop(0.23);
  chain.p = 0.0;
  chain.u_l = 0.50;
  EXPECT_EQ(RuleOf(chain), Rule::kUnclear);
  EXPECT_EQ(RuleOf({.ipc = 0.1, .u_b = 0.01, .u_m = 0.01, .u_l = 0.50}), Rule::kUnclear);
  EXPECT_EQ(RuleOf({.ipc = 0.1, .u_b = 0.01, .u_m = 0.01, .u_l = 0.49}), Rule::kSlowLoop);
}

// Contended waits miss too, at a lower IPC, unless they would pause.
TEST(Evidence, L1dMissesAreWork) {
  const Row work = {.ipc = 0.20, .b = 0.05, .u_b = 0.1, .u_l = 1.0};
  EXPECT_EQ(RuleOf(work), Rule::kL1dMisses);
  EXPECT_EQ(Judge({.ipc = 0.1, .b = 0.05, .u_b = 0.1, .p = 0.0, .u_l = kFar}),
            (Judgement{Band::kProductive, Rule::kL1dMisses, 0.75}));
  Row row = work;
  row.ipc = 0.20 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.p = 0.01 * kBelow;
  EXPECT_EQ(Judge(row).band, Band::kProductive);
  EXPECT_EQ(RuleOf(row), Rule::kL1dMisses);
  row.p = 0.01;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = work;
  row.u_l = kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
}

// Without cache misses and L1D misses the looks of a loop are half of what they are.
TEST(Evidence, ABareLoopIsLessSure) {
  const Row pool = {.ipc = 0.87, .b = 0.28, .u_b = 0.03};
  EXPECT_EQ(RuleOf(pool), Rule::kBareLoop);
  EXPECT_EQ(Judge({.ipc = 0.75, .b = 0.28, .u_b = 0.001}),
            (Judgement{Band::kSpinning, Rule::kBareLoop, 0.40 * (0.6 - std::log(0.75))}));
  Row row = pool;
  row.u_b = 0.05;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.u_b = 0.05 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kBareLoop);
  row.b = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kBareLoop);
  row.b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  // Work in a cache runs as fast.
  row = pool;
  row.ipc = 1.0;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.ipc = kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kBareLoop);
  // One of the two is enough for the other rules.
  for (const bool l1d : {false, true}) {
    row = pool;
    (l1d ? row.u_l : row.u_m) = 0.01;
    EXPECT_EQ(RuleOf(row), Rule::kTightLoop);
  }
  // Slow ones: by the IPCs of this CPU's spins.
  row = pool;
  row.ipc = 0.06;
  EXPECT_EQ(RuleOf(row), Rule::kBareLoop);
  EXPECT_EQ(RuleOf(row, Calibrated(0.045, 0.075)), Rule::kBareLoop);
  row.ipc = 0.23;
  EXPECT_EQ(RuleOf(row, Calibrated(0.045, 0.075)), Rule::kUnclear);
  row.p = 0;
  EXPECT_EQ(RuleOf(row), Rule::kSlowChain);
}

// Slow without misses and without PAUSE: a wait only where this CPU is not known to do better.
TEST(Evidence, Rule4BelowHalfAnInstructionPerCycle) {
  EXPECT_EQ(RuleOf(Loop(0.03)), Rule::kTightLoop);  // nothing known of this CPU

  Row counted = Loop(0.23);  // a dependent divide where PAUSE is counted: 0
  counted.p = 0.0;
  EXPECT_EQ(Judge(counted), (Judgement{Band::kProductive, Rule::kSlowChain, 0.60}));
  counted.ipc = 0.50;
  EXPECT_EQ(RuleOf(counted), Rule::kTightLoop);
  counted.ipc = 0.50 * kBelow;
  EXPECT_EQ(RuleOf(counted), Rule::kSlowChain);

  EXPECT_EQ(RuleOf(Loop(0.23), Calibrated(0.045, 0.075)), Rule::kUnclear);
  EXPECT_EQ(RuleOf(Loop(0.87), Calibrated(0.045, 0.075)), Rule::kTightLoop);
}

TEST(Evidence, Rule4AtTheSpinIpcOfThisCpu) {
  const EvidenceThresholds calibrated = Calibrated(0.24, 0.5);
  EXPECT_EQ(Judge(Loop(0.35), calibrated).band, Band::kSpinning);
  EXPECT_EQ(RuleOf(Loop(0.35), calibrated), Rule::kSpinIpc);
  EXPECT_EQ(RuleOf(Loop(0.24), calibrated), Rule::kSpinIpc);
  EXPECT_EQ(RuleOf(Loop(0.24 * kBelow), calibrated), Rule::kUnclear);
  EXPECT_EQ(RuleOf(Loop(0.50), calibrated), Rule::kSpinIpc);
  EXPECT_EQ(RuleOf(Loop(0.50 / kBelow), calibrated), Rule::kTightLoop);
  // The same looks with misses or few branches are no loop.
  Row row = Loop(0.35);
  row.u_m = 0.10;
  EXPECT_EQ(RuleOf(row, calibrated), Rule::kUnclear);
  row = Loop(0.35);
  row.u_b = 0.10;
  EXPECT_EQ(RuleOf(row, calibrated), Rule::kUnclear);
  row = Loop(0.35);
  row.b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row, calibrated), Rule::kUnclear);
  // Where PAUSE is counted, and there is none, that IPC is a coincidence.
  row = Loop(0.35);
  row.p = 0.0;
  EXPECT_EQ(RuleOf(row, calibrated), Rule::kSlowChain);
}

// A slow loop without PAUSE that misses is for other rules to judge.
TEST(Evidence, ASlowChainIsTight) {
  const auto chain = [] {
    Row row = Loop(0.23);
    row.p = 0.0;
    return row;
  };
  Row row = chain();
  row.u_b = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = chain();
  row.u_m = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = chain();
  row.b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = chain();
  row.p = 0.01 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kSlowChain);
  row.p = 0.01;  // a wait that backs off
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
}

TEST(Evidence, EachSpinIpcOfACpuCounts) {
  EvidenceThresholds two = Calibrated(0.02, 0.03);
  two.spin_ipc[1] = {0.10, 0.12};
  two.spin_ipcs = 2;
  EXPECT_EQ(RuleOf(Loop(0.025), two), Rule::kSpinIpc);
  EXPECT_EQ(RuleOf(Loop(0.11), two), Rule::kSpinIpc);
  EXPECT_EQ(RuleOf(Loop(0.05), two), Rule::kUnclear);
}

TEST(Evidence, Rule5ATightLoopAboveOneInstructionPerCycleIsPollLike) {
  EXPECT_EQ(Judge(Loop(4.6)), (Judgement{Band::kSpinning, Rule::kPollLike, 0.60}));
  EXPECT_EQ(RuleOf(Loop(1.0)), Rule::kPollLike);
  EXPECT_EQ(RuleOf(Loop(kBelow)), Rule::kTightLoop);
  Row row = Loop(4.6);
  row.p = 0.0;  // polls without PAUSE
  EXPECT_EQ(RuleOf(row), Rule::kPollLike);
  row.u_b = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kIpcHigh);
  row = Loop(4.6);
  row.b = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kIpcHigh);
  row = Loop(4.6);
  row.u_m = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kIpcHigh);
}

TEST(Evidence, Rule5IsSurerOfASteadyLoop) {
  Row row = Loop(4.6);
  row.spread = 0.01;
  EXPECT_DOUBLE_EQ(Judge(row).confidence, 0.75);
  row.spread = 0.02 * kBelow;
  EXPECT_DOUBLE_EQ(Judge(row).confidence, 0.75);
  row.spread = 0.02;
  EXPECT_DOUBLE_EQ(Judge(row).confidence, 0.60);
  EXPECT_EQ(Judge(row).rule, Rule::kPollLike);
}

TEST(Evidence, Rule6WhereBranchesAreNotCounted) {
  const Row slow{.ipc = 0.1, .u_b = 0.01, .u_m = 0.01};
  EXPECT_EQ(Judge(slow), (Judgement{Band::kSpinning, Rule::kSlowLoop, 0.60}));
  Row row = slow;
  row.u_b = 0.05;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.u_b = 0.05 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kSlowLoop);
  row = slow;
  row.ipc = 0.35;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.ipc = 0.35 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kSlowLoop);
  row = slow;
  row.u_m = 0.10;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.u_m = 0.10 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kSlowLoop);
  // Branches counted, and few: no loop.
  row = slow;
  row.b = 0.05;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = slow;
  row.p = 0.0;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
}

TEST(Evidence, Rule6KeepsToTheSpinIpcOfThisCpu) {
  const EvidenceThresholds calibrated = Calibrated(0.09, 0.13);
  const auto slow = [](double ipc) { return Row{.ipc = ipc, .u_b = 0.01, .u_m = 0.01}; };
  EXPECT_EQ(RuleOf(slow(0.11), calibrated), Rule::kSlowLoop);
  EXPECT_EQ(RuleOf(slow(0.09), calibrated), Rule::kSlowLoop);
  EXPECT_EQ(RuleOf(slow(0.13), calibrated), Rule::kSlowLoop);
  EXPECT_EQ(RuleOf(slow(0.23), calibrated), Rule::kUnclear);
  EXPECT_EQ(RuleOf(slow(0.05), calibrated), Rule::kUnclear);
}

TEST(Evidence, Rule7SlowForItsCacheMissesIsProductive) {
  const Row chase{.ipc = 0.004, .b = 0.3, .u_b = 0.01, .u_m = 3.0};
  EXPECT_EQ(Judge(chase), (Judgement{Band::kProductive, Rule::kMemoryBound, 0.90}));
  Row row = chase;
  row.u_m = 0.5;
  EXPECT_EQ(RuleOf(row), Rule::kMemoryBound);
  row.u_m = 0.5 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = chase;
  row.ipc = 0.75;
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row.ipc = 0.75 * kBelow;
  EXPECT_EQ(RuleOf(row), Rule::kMemoryBound);
}

TEST(Evidence, Rule7IsOffWhereTheCountIsNoEvidence) {
  EvidenceThresholds off = Uncut();
  off.memory_bound_cache_misses_from.reset();
  EXPECT_EQ(RuleOf({.ipc = 0.004, .b = 0.3, .u_b = 0.01, .u_m = 3.0}, off), Rule::kUnclear);
}

TEST(Evidence, Rule8ProgressIsProductive) {
  EXPECT_EQ(Judge({.ipc = 2.5}), (Judgement{Band::kProductive, Rule::kIpcHigh, 0.95}));
  EXPECT_EQ(RuleOf({.ipc = 1.0}), Rule::kIpcHigh);
  EXPECT_EQ(RuleOf({.ipc = kBelow}), Rule::kUnclear);
  EXPECT_EQ(Judge({.ipc = 0.6, .b = 0.2, .u_b = 4.0, .u_m = 0.3}),
            (Judgement{Band::kProductive, Rule::kBranchMisses, 0.95}));
  EXPECT_EQ(RuleOf({.ipc = 0.6, .u_b = 0.20}), Rule::kBranchMisses);
  EXPECT_EQ(RuleOf({.ipc = 0.6, .u_b = 0.20 * kBelow}), Rule::kUnclear);
}

TEST(Evidence, Rule9ElseItIsUnclear) {
  EXPECT_EQ(Judge({.ipc = 0.8, .b = 0.05, .u_b = 0.05, .u_m = 0.3}),
            (Judgement{Band::kUnknown, Rule::kUnclear, 0}));
}

// A rule whose feature was not measured is skipped; what is left speaks or nothing does.
TEST(Evidence, AnAbsentFeatureSkipsItsRules) {
  Row row = Loop(0.7);
  row.u_b.reset();
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = Loop(0.7);
  row.b.reset();
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  row = Loop(0.7);
  row.ipc.reset();
  EXPECT_EQ(RuleOf(row), Rule::kUnclear);
  EXPECT_EQ(RuleOf({.ipc = 0.1, .u_m = 0.01}), Rule::kUnclear);  // rule 6 without branch-misses
  EXPECT_EQ(RuleOf({.ipc = 0.1, .u_b = 0.01}), Rule::kUnclear);  // and without cache-misses
  EXPECT_EQ(RuleOf({.ipc = 0.1}), Rule::kUnclear);               // rule 7 likewise
  EXPECT_EQ(RuleOf({.u_b = 0.3}), Rule::kBranchMisses);          // rule 8 by its other half
}

TEST(Evidence, WithoutInstructionsThatIsTheReason) {
  Features features = Of({});
  features.instructions_counted = false;
  EXPECT_EQ(EvidenceRules(Uncut()).Judge(features),
            (Judgement{Band::kUnknown, Rule::kNoInstructions, 0}));
}

TEST(Evidence, ConfidenceFallsWithTheShareThatWasCounted) {
  EXPECT_DOUBLE_EQ(Judge({.ipc = 2.5, .q = 0.25}).confidence, 0.95 * 0.5);
}

TEST(Evidence, ConfidenceFallsWithFewCycles) {
  EXPECT_DOUBLE_EQ(Judge({.ipc = 2.5, .cycles = 1.5e6}).confidence, 0.95 * 0.75);
  EXPECT_DOUBLE_EQ(Judge({.ipc = 2.5, .cycles = 2e6}).confidence, 0.95);
  EXPECT_DOUBLE_EQ(Judge({.ipc = 2.5, .cycles = 4e6}).confidence, 0.95);
}

TEST(Evidence, ConfidenceIsLowestAtAThreshold) {
  EXPECT_DOUBLE_EQ(Judge({.ipc = 1.0}).confidence, 0.95 * 0.6);
  EXPECT_DOUBLE_EQ(Judge({.ipc = std::exp(0.2)}).confidence, 0.95 * 0.8);
  EXPECT_DOUBLE_EQ(Judge({.ipc = std::exp(0.5)}).confidence, 0.95);
  // The nearest of several thresholds counts.
  Row row = Loop(0.7);
  row.b = 0.10 * std::exp(0.1);
  EXPECT_DOUBLE_EQ(Judge(row).confidence, 0.60 * 0.7);
  row.u_m = 0.10 * std::exp(-0.05);
  EXPECT_NEAR(Judge(row).confidence, 0.60 * 0.65, 1e-12);
  // In the middle of a range its ends are the nearest.
  EXPECT_NEAR(Judge(Loop(std::sqrt(0.24 * 0.5)), Calibrated(0.24, 0.5)).confidence,
              0.85 * (0.6 + std::log(0.5 / 0.24) / 2), 1e-12);
}

TEST(Evidence, AFeatureOfZeroIsFarFromItsThreshold) {
  Row row = Loop(4.6);
  row.u_b = 0;
  row.u_m = 0;
  EXPECT_EQ(Judge(row).confidence, 0.60);
}

TEST(Evidence, AWeakVerdictIsNotGivenAndKeepsItsConfidence) {
  EvidenceThresholds cut = Uncut();
  cut.weak_below = 0.5;
  EXPECT_EQ(RuleOf({.ipc = 1.0}, cut), Rule::kIpcHigh);  // 0.57
  const Judgement weak = Judge({.ipc = 1.0, .q = 0.25}, cut);
  EXPECT_EQ(weak, (Judgement{Band::kUnknown, Rule::kWeak, 0.95 * 0.6 * 0.5}));
  cut.weak_below = 0.95 * 0.6;
  EXPECT_EQ(RuleOf({.ipc = 1.0}, cut), Rule::kIpcHigh);
}

// The cut of the generic profile lets an IPC of exactly 1 and loops with no threshold near speak.
TEST(Evidence, TheGenericCut) {
  const EvidenceThresholds generic;
  EXPECT_EQ(RuleOf({.ipc = 1.0}, generic), Rule::kIpcHigh);
  EXPECT_EQ(RuleOf(Loop(0.7), generic), Rule::kTightLoop);
  EXPECT_EQ(RuleOf(Loop(4.6), generic), Rule::kPollLike);
  EXPECT_EQ(RuleOf({.ipc = 0.1, .u_b = 0.01, .u_m = 0.01}, generic), Rule::kSlowLoop);
  Row multiplexed = Loop(4.6);
  multiplexed.q = 0.12;
  EXPECT_EQ(RuleOf(multiplexed, generic), Rule::kPollLike);  // 0.208
  multiplexed.q = 0.11;
  EXPECT_EQ(RuleOf(multiplexed, generic), Rule::kWeak);  // 0.199
}

TEST(Evidence, TheRuleThatFiredIsNamed) {
  const EvidenceRules rules(Calibrated(0.24, 0.5));
  const std::vector<std::pair<Row, Rule>> rows = {
      {{.ipc = 1, .cycles = 1}, Rule::kShort},
      {{.p = 0.5}, Rule::kPause},
      {{.p = 0.2}, Rule::kMixed},
      {Loop(0.3), Rule::kSpinIpc},
      {Loop(0.8), Rule::kTightLoop},
      {Loop(3), Rule::kPollLike},
      {{.ipc = 0.3, .u_b = 0.01, .u_m = 0.01}, Rule::kSlowLoop},
      {{.ipc = 0.3, .u_m = 2}, Rule::kMemoryBound},
      {{.ipc = 2}, Rule::kIpcHigh},
      {{.u_b = 2}, Rule::kBranchMisses},
  };
  for (const auto& [row, rule] : rows) {
    size_t fired = 0;
    EXPECT_EQ(rules.Judge(Of(row), &fired).rule, rule);
    ASSERT_LT(fired, rules.rules().size());
    EXPECT_EQ(rules.rules()[fired].rule, rule);
    EXPECT_EQ(Try(rules.rules()[fired], Of(row)), Outcome::kHolds);
  }
  size_t fired = 0;
  EXPECT_EQ(rules.Judge(Of({.ipc = 0.6}), &fired).rule, Rule::kUnclear);
  EXPECT_EQ(fired, rules.rules().size());
}

TEST(Evidence, ARuleIsSkippedEvenWhereAnotherOfItsConditionsFails) {
  const EvidenceRules rules(Uncut());
  const EvidenceRule& memory_bound = rules.rules()[rules.rules().size() - 5];
  ASSERT_EQ(memory_bound.rule, Rule::kMemoryBound);
  EXPECT_EQ(Try(memory_bound, Of({.ipc = 2.0})), Outcome::kSkipped);
  EXPECT_EQ(Try(memory_bound, Of({.ipc = 2.0, .u_m = 1.0})), Outcome::kFails);
  EXPECT_EQ(Try(memory_bound, Of({.ipc = 0.2, .u_m = 1.0})), Outcome::kHolds);
}

}  // namespace
}  // namespace vcpulse::core

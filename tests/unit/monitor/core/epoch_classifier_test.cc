#include "monitor/core/epoch_classifier.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vcpulse::core {
namespace {

constexpr EventSlots kEpochSlots{.cycles = 0, .instructions = 1};
constexpr EventSlots kAllSlots{
    .cycles = 0, .instructions = 1, .branches = 2, .branch_misses = 3, .cache_misses = 4};
constexpr ResidencyBasis kEpochBasis{.max_hz = 1e9};
constexpr int64_t kEpochInterval = 100'000'000;

VcpuSample Busy(int64_t ms) {
  const auto ns = static_cast<uint64_t>(ms) * 1'000'000;
  VcpuSample sample{.read_begin_ns = static_cast<int64_t>(ns),
                    .read_end_ns = static_cast<int64_t>(ns),
                    .time_enabled_ns = ns,
                    .time_running_ns = ns};
  sample.counts[0] = ns;
  sample.counts[1] = ns * 2;
  return sample;
}

// BPF keeps values of running vCPUs as old as the host's own tick: until there are newer ones, a
// sample brings nothing to judge.
TEST(EpochClassifier, WhatIsNoNewerIsJudgedOnce) {
  constexpr int64_t kTick = 1'000'000;
  EpochClassifier classifier({.vcpus = 1, .slots = kEpochSlots}, Classifier::kIpcBands, {}, kTick);
  ResidencyEstimator residency({kEpochBasis});
  std::vector<Verdict> verdicts(1);
  Sample sample{.vcpus = {Busy(100)}};
  // Values of each 20th tick: twelve alike would fill the window of a tick of 1 ms.
  for (int tick = 0; tick < 60; ++tick) {
    sample.vcpus[0] = Busy(100 + tick / 20 * 20);
    classifier.Classify(sample, residency, verdicts);
    EXPECT_EQ(verdicts[0].band, tick < 20 ? Band::kNone : Band::kProductive) << tick;
  }
}

// The first sample of an epoch has nothing before it; the hysteresis is each vCPU's own.
TEST(EpochClassifier, JudgesEachVcpuFromItsSecondSampleOn) {
  EpochClassifier classifier({.vcpus = 2, .slots = kEpochSlots}, Classifier::kIpcBands, {},
                             kEpochInterval);
  ResidencyEstimator residency({kEpochBasis});
  std::vector<Verdict> verdicts(2);
  VcpuSample idle{.state = ThreadState::kBlocked};
  Sample sample{.vcpus = {Busy(100), idle}};
  sample.vcpus[1].read_begin_ns = sample.vcpus[1].read_end_ns = 100'000'000;
  classifier.Classify(sample, residency, verdicts);
  EXPECT_EQ(verdicts[0], Verdict{});
  EXPECT_EQ(verdicts[1], Verdict{});

  sample.vcpus[0] = Busy(200);
  sample.vcpus[1].read_begin_ns = sample.vcpus[1].read_end_ns = 200'000'000;
  classifier.Classify(sample, residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kProductive);
  EXPECT_EQ(verdicts[1].band, Band::kHalted);

  // Residency 0.03: HALTED for the one that was, PRODUCTIVE for the other.
  for (VcpuSample& vcpu : sample.vcpus) {
    vcpu.read_begin_ns = vcpu.read_end_ns = 300'000'000;
    vcpu.time_enabled_ns += 5'000'000;
    vcpu.time_running_ns += 5'000'000;
    vcpu.counts[0] += 3'000'000;
    vcpu.counts[1] += 6'000'000;
  }
  classifier.Classify(sample, residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kProductive);
  EXPECT_EQ(verdicts[1].band, Band::kHalted);
}

// A hybrid host: 60 ms on the fast cores at IPC 2, 30 ms on the slow ones at IPC 0.5. Raw counts of
// both PMUs add up: IPC (120 + 15) / (60 + 15); each PMU's cycles are held against its own rate.
TEST(EpochClassifier, AddsUpTheCorePmusOfAHybridHost) {
  const auto at = [](int64_t end_ns, uint64_t fast_ns, uint64_t slow_ns) {
    VcpuSample vcpu{.read_begin_ns = end_ns,
                    .read_end_ns = end_ns,
                    .time_enabled_ns = fast_ns + slow_ns,
                    .time_running_ns = fast_ns};
    vcpu.counts[0] = fast_ns;
    vcpu.counts[1] = 2 * fast_ns;
    GroupSample slow{.time_enabled_ns = fast_ns + slow_ns, .time_running_ns = slow_ns};
    slow.counts[0] = slow_ns / 2;
    slow.counts[1] = slow_ns / 4;
    return Sample{.vcpus = {vcpu}, .further = {slow}};
  };
  EpochClassifier classifier({.vcpus = 1, .slots = kEpochSlots, .core_pmus = 2},
                             Classifier::kIpcBands, {}, kEpochInterval);
  ResidencyEstimator residency(std::vector<ResidencyBasis>{{.max_hz = 1e9}, {.max_hz = 0.5e9}});
  std::vector<Verdict> verdicts(1);
  classifier.Classify(at(kEpochInterval, 0, 0), residency, verdicts);
  EXPECT_EQ(verdicts[0], Verdict{});
  classifier.Classify(at(2 * kEpochInterval, 60'000'000, 30'000'000), residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kProductive);
  EXPECT_EQ(verdicts[0].rule, Rule::kIpcHigh);
  // On the slow cores alone: IPC 0.5. Their PMU alone would have said "never ran" for the other.
  classifier.Classify(at(3 * kEpochInterval, 60'000'000, 130'000'000), residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kSpinning);
  EXPECT_EQ(verdicts[0].rule, Rule::kIpcLow);
}

// Two vCPUs with three core PMUs each, of which one ran: the further groups are vCPU-major.
TEST(EpochClassifier, TakesEachVcpusOwnFurtherGroup) {
  const auto at = [](int64_t n) {
    VcpuSample vcpu{.read_begin_ns = n * kEpochInterval, .read_end_ns = n * kEpochInterval};
    Sample sample{.vcpus = {vcpu, vcpu}, .further = {{}, {}, {}, {}}};
    for (size_t v = 0; v < 2; ++v) {
      sample.vcpus[v].time_enabled_ns = static_cast<uint64_t>(n * kEpochInterval);
      sample.further[2 * v + 1].time_enabled_ns = static_cast<uint64_t>(n * kEpochInterval);
      GroupSample& group = sample.further[2 * v];
      group.time_enabled_ns = group.time_running_ns = static_cast<uint64_t>(n * kEpochInterval);
      group.counts[0] = static_cast<uint64_t>(n * kEpochInterval);
      group.counts[1] = static_cast<uint64_t>(n * kEpochInterval) * (v == 0 ? 2 : 0);
    }
    return sample;
  };
  EpochClassifier classifier({.vcpus = 2, .slots = kEpochSlots, .core_pmus = 3},
                             Classifier::kIpcBands, {}, kEpochInterval);
  ResidencyEstimator residency(std::vector<ResidencyBasis>(3, {.max_hz = 1e9}));
  std::vector<Verdict> verdicts(2);
  classifier.Classify(at(1), residency, verdicts);
  classifier.Classify(at(2), residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kProductive);
  EXPECT_EQ(verdicts[1].band, Band::kSpinning);
}

// They are those of one type of core.
TEST(EpochClassifier, IpcsOfSpinsAreNotHeldAgainstSumsOverPmus) {
  Profile profile;
  profile.evidence.spin_ipcs = 2;
  const auto ranges_with = [&profile](size_t core_pmus) {
    const EpochClassifier classifier({.vcpus = 1, .slots = kEpochSlots, .core_pmus = core_pmus},
                                     Classifier::kEvidence, profile, kEpochInterval);
    return classifier.evidence().thresholds().spin_ipcs;
  };
  EXPECT_EQ(ranges_with(1), 2u);
  EXPECT_EQ(ranges_with(2), 0u);
  EXPECT_EQ(ranges_with(3), 0u);
}

// At ticks as long as the window, one vCPU's may be full and another's, read a little early, not.
TEST(EpochClassifier, WindowsFillVcpuByVcpu) {
  EpochClassifier classifier({.vcpus = 2, .slots = kEpochSlots}, Classifier::kIpcBands, {},
                             10'000'000);
  ResidencyEstimator residency({kEpochBasis});
  std::vector<Verdict> verdicts(2);
  Sample sample{.vcpus = {Busy(100), Busy(100)}};
  classifier.Classify(sample, residency, verdicts);
  sample.vcpus = {Busy(110), Busy(109)};
  classifier.Classify(sample, residency, verdicts);
  EXPECT_EQ(verdicts[0].band, Band::kProductive);
  EXPECT_EQ(verdicts[1], Verdict{});
}

// One vCPU at 1 GHz under the evidence classifier, tick by tick.
class EvidenceOfOneVcpu : public testing::Test {
 protected:
  // One more tick: `residency` of it ran, at this IPC and these branch misses per kilo-cycle.
  Verdict Tick(double residency, double ipc, double branch_misses) {
    const double cycles = residency * kEpochInterval;
    now_.read_begin_ns = now_.read_end_ns += kEpochInterval;
    now_.time_enabled_ns += static_cast<uint64_t>(cycles);
    now_.time_running_ns += static_cast<uint64_t>(cycles);
    now_.counts[0] += static_cast<uint64_t>(cycles);
    now_.counts[1] += static_cast<uint64_t>(ipc * cycles);
    now_.counts[2] += static_cast<uint64_t>(0.25 * ipc * cycles);
    now_.counts[3] += static_cast<uint64_t>(branch_misses * cycles / 1000);
    return Judge();
  }
  Verdict Work() { return Tick(1, 1.5, 4); }
  Verdict Spin() { return Tick(1, 0.8, 0); }
  Verdict Halt() {
    now_.read_begin_ns = now_.read_end_ns += kEpochInterval;
    now_.state = ThreadState::kBlocked;
    const Verdict verdict = Judge();
    now_.state = ThreadState::kNotRead;
    return verdict;
  }
  Verdict Judge() {
    std::vector<Verdict> verdicts(1);
    classifier_.Classify(Sample{.vcpus = {now_}}, residency_, verdicts);
    return verdicts.front();
  }

  VcpuSample now_;
  EpochClassifier classifier_{
      {.vcpus = 1, .slots = kAllSlots}, Classifier::kEvidence, Profile{}, kEpochInterval};
  ResidencyEstimator residency_{{kEpochBasis}};
};

TEST_F(EvidenceOfOneVcpu, VerdictsCarryRuleConfidenceAndRawBand) {
  EXPECT_EQ(Work(), Verdict{});  // nothing to subtract from
  EXPECT_EQ(Work(), (Verdict{.band = Band::kProductive,
                             .rule = Rule::kIpcHigh,
                             .confidence_pct = 95,
                             .raw_band = Band::kProductive,
                             .raw_rule = Rule::kIpcHigh}));
  // Not believed yet; ln(0.8) lowers the confidence: 0.6 * (0.6 + 0.223).
  EXPECT_EQ(Spin(), (Verdict{.band = Band::kProductive,
                             .rule = Rule::kIpcHigh,
                             .confidence_pct = 95,
                             .raw_band = Band::kSpinning,
                             .raw_rule = Rule::kTightLoop}));
  EXPECT_EQ(Spin(), (Verdict{.band = Band::kSpinning,
                             .rule = Rule::kTightLoop,
                             .confidence_pct = 49,
                             .raw_band = Band::kSpinning,
                             .raw_rule = Rule::kTightLoop}));
  EXPECT_EQ(Halt(), (Verdict{.band = Band::kHalted,
                             .rule = Rule::kBlocked,
                             .confidence_pct = 99,
                             .raw_band = Band::kHalted,
                             .raw_rule = Rule::kBlocked}));
}

// 0.95 * sqrt(q) of 0.5947 and of 0.5953.
TEST_F(EvidenceOfOneVcpu, ThePercentOfConfidenceIsRounded) {
  const auto on_pmu = [this](uint64_t running_ns) {
    now_.read_begin_ns = now_.read_end_ns += kEpochInterval;
    now_.time_enabled_ns += kEpochInterval;
    now_.time_running_ns += running_ns;
    now_.counts[0] += running_ns;
    now_.counts[1] += 3 * running_ns;
    now_.counts[3] += running_ns / 100;
    return Judge().confidence_pct;
  };
  on_pmu(kEpochInterval);
  EXPECT_EQ(on_pmu(39'187'600), 59);
  EXPECT_EQ(on_pmu(39'267'000), 60);
}

TEST_F(EvidenceOfOneVcpu, HaltedIsEnteredAndLeftAtOnce) {
  Work();
  EXPECT_EQ(Work().band, Band::kProductive);
  EXPECT_EQ(Halt().band, Band::kHalted);
  EXPECT_EQ(Spin().band, Band::kSpinning);
}

// Residency between the two floors: HALTED stays what it is, and so does the other.
TEST_F(EvidenceOfOneVcpu, TheFloorOfHaltedDependsOnTheBandBefore) {
  Work();
  Work();
  EXPECT_EQ(Tick(0.03, 1.5, 4).band, Band::kProductive);
  EXPECT_EQ(Tick(0.015, 1.5, 4).band, Band::kHalted);
  EXPECT_EQ(Tick(0.03, 1.5, 4).band, Band::kHalted);
  EXPECT_EQ(Tick(0.041, 1.5, 4).band, Band::kProductive);
}

TEST_F(EvidenceOfOneVcpu, WaitingForACpuIsAnOverlay) {
  now_.has_scheduler_times = true;
  Work();
  now_.run_delay_ns += 11'000'000;
  EXPECT_TRUE(Work().starved);
  now_.run_delay_ns += 10'000'000;
  EXPECT_FALSE(Work().starved);
}

// Ten IPCs in a row within 2 %: the eleventh sample has ten deltas before it.
TEST_F(EvidenceOfOneVcpu, ASteadyLoopIsSurer) {
  Tick(1, 3, 0);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Tick(1, 3, 0).confidence_pct, 60) << i;
  EXPECT_EQ(Tick(1, 3, 0).confidence_pct, 75);
  EXPECT_EQ(classifier_.features(0).Value(Feature::kIpcSpread), 0.0);
  EXPECT_EQ(Tick(1, 3.03, 0).confidence_pct, 75);
  // (3.1 - 3) / 3.013
  EXPECT_EQ(Tick(1, 3.1, 0).confidence_pct, 60);
  EXPECT_NEAR(*classifier_.features(0).Value(Feature::kIpcSpread), 0.1 / 3.013, 1e-9);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Tick(1, 3.1, 0).confidence_pct, i < 8 ? 60 : 75) << i;
}

TEST_F(EvidenceOfOneVcpu, AHaltForgetsTheIpcsBeforeIt) {
  Tick(1, 3, 0);
  for (int i = 0; i < 10; ++i) Tick(1, 3, 0);
  Halt();
  EXPECT_EQ(Tick(1, 3, 0).confidence_pct, 60);
  EXPECT_EQ(classifier_.features(0).Value(Feature::kIpcSpread), std::nullopt);
}

TEST_F(EvidenceOfOneVcpu, LowIpcsHaveASpreadToo) {
  for (int i = 0; i < 11; ++i) Tick(1, 0.03, 4);
  EXPECT_EQ(classifier_.features(0).Value(Feature::kIpcSpread), 0.0);
}

TEST_F(EvidenceOfOneVcpu, NoInstructionAtAllHasNoSpread) {
  for (int i = 0; i < 11; ++i) Tick(1, 0, 4);
  EXPECT_EQ(classifier_.features(0).Value(Feature::kIpcSpread), std::nullopt);
}

TEST_F(EvidenceOfOneVcpu, AnImpossibleIntervalHasNoVerdict) {
  Work();
  EXPECT_EQ(Judge(), Verdict{});
}

TEST(EpochClassifier, IpcBandsAreNotSmoothed) {
  EpochClassifier classifier({.vcpus = 1, .slots = kEpochSlots}, Classifier::kIpcBands, {},
                             kEpochInterval);
  ResidencyEstimator residency({kEpochBasis});
  std::vector<Verdict> verdicts(1);
  VcpuSample now;
  std::vector<Band> bands;
  for (const double ipc : {2.0, 2.0, 0.5, 2.0}) {
    now.read_begin_ns = now.read_end_ns += kEpochInterval;
    now.time_enabled_ns = now.time_running_ns += kEpochInterval;
    now.counts[0] += kEpochInterval;
    now.counts[1] += static_cast<uint64_t>(ipc * kEpochInterval);
    classifier.Classify(Sample{.vcpus = {now}}, residency, verdicts);
    bands.push_back(verdicts[0].band);
    EXPECT_EQ(verdicts[0].band, verdicts[0].raw_band);
    EXPECT_EQ(verdicts[0].confidence_pct, verdicts[0].band == Band::kNone ? 0 : 30);
  }
  EXPECT_EQ(bands,
            (std::vector{Band::kNone, Band::kProductive, Band::kSpinning, Band::kProductive}));
}

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

#include "monitor/core/classify.h"

#include <gtest/gtest.h>

#include "monitor/core/residency.h"
#include "monitor/core/verdict.h"

namespace vcpulse::core {
namespace {

constexpr EventSlots kSlots{.cycles = 0, .instructions = 1};
constexpr ResidencyBasis kBasis{.max_hz = 1e9};
constexpr int64_t kInterval = 100'000'000;

// 100 ms of 1 GHz: `residency` of it in guest mode, `enabled` of it on a CPU.
VcpuDelta Make(double enabled, double residency, double ipc) {
  VcpuDelta delta{.interval_ns = kInterval,
                  .time_enabled_ns = static_cast<uint64_t>(enabled * kInterval),
                  .time_running_ns = static_cast<uint64_t>(enabled * kInterval),
                  .run_ns = static_cast<uint64_t>(enabled * kInterval),
                  .run_delay_ns = 0};
  delta.counts[0] = static_cast<uint64_t>(residency * kInterval);
  delta.counts[1] = static_cast<uint64_t>(ipc * residency * kInterval);
  return delta;
}

// What the presence rules and then ipc-bands say.
struct Judged {
  Band band;
  Rule rule;
  bool starved = false;

  bool operator==(const Judged&) const = default;
};

Judged JudgeWith(const VcpuDelta& delta, const EventSlots& slots, std::optional<double> residency,
                 const Profile& profile, Band previous) {
  Features features;
  features.residency = residency;
  Measure(delta, slots, std::nullopt, features);
  const Judgement judgement = JudgePresence(features, profile.presence, previous)
                                  .value_or(JudgeIpcBands(features, profile.ipc_bands));
  return {judgement.band, judgement.rule, IsStarved(features, profile.presence)};
}

Judged Judge(const VcpuDelta& delta, Band previous = Band::kNone,
             const EventSlots& slots = kSlots) {
  return JudgeWith(delta, slots, Residency(delta, slots, kBasis), {}, previous);
}

VcpuDelta OffCpu(ThreadState state) {
  VcpuDelta delta = Make(0, 0, 0);
  delta.state = state;
  return delta;
}

TEST(IpcBands, OffTheCpuTheThreadStateDecides) {
  EXPECT_EQ(Judge(OffCpu(ThreadState::kBlocked)), (Judged{Band::kHalted, Rule::kBlocked, false}));
  EXPECT_EQ(Judge(OffCpu(ThreadState::kRunnable)), (Judged{Band::kUnknown, Rule::kStarved, true}));
  EXPECT_EQ(Judge(OffCpu(ThreadState::kStopped)), (Judged{Band::kUnknown, Rule::kPaused, false}));
  EXPECT_EQ(Judge(OffCpu(ThreadState::kPaused)), (Judged{Band::kUnknown, Rule::kPaused, false}));
  EXPECT_EQ(Judge(OffCpu(ThreadState::kNotRead)),
            (Judged{Band::kUnknown, Rule::kStateUnknown, false}));
  EXPECT_EQ(Judge(OffCpu(ThreadState::kExited)),
            (Judged{Band::kUnknown, Rule::kStateUnknown, false}));
}

TEST(IpcBands, LittleTimeOnACpuIsHalted) {
  EXPECT_EQ(Judge(Make(0.0199, 0.01, 3.0)), (Judged{Band::kHalted, Rule::kResidency, false}));
}

// Delay is booked only when the thread gets its CPU back, and then all at once.
TEST(IpcBands, LittleTimeAfterMuchWaitingIsStarvedNotHalted) {
  VcpuDelta delta = Make(0.01, 0.01, 1.0);
  delta.run_delay_ns = 51'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStarved, true}));
  delta.run_delay_ns = 49'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kHalted, Rule::kResidency, true}));
}

// Preempted 1 ms into the tick: nothing is booked yet, only the state shows that it wants to run.
TEST(IpcBands, LittleTimeAndRunnableNowIsNeverHalted) {
  VcpuDelta delta = Make(0.01, 0.01, 1.0);
  delta.state = ThreadState::kRunnable;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStateUnknown, false}));
  delta.run_delay_ns = 11'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStarved, true}));
}

TEST(IpcBands, LittleTimeAndStoppedIsPaused) {
  VcpuDelta delta = Make(0.01, 0.01, 1.0);
  delta.state = ThreadState::kStopped;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kPaused, false}));
}

// The edge on both sides of halted_enter, in residency.
TEST(IpcBands, ResidencyBelowTheFloorIsHalted) {
  EXPECT_EQ(Judge(Make(0.05, 0.0199, 3.0)).band, Band::kHalted);
  EXPECT_EQ(Judge(Make(0.05, 0.0201, 3.0)), (Judged{Band::kProductive, Rule::kIpcHigh, false}));
}

TEST(IpcBands, HaltedIsLeftAboveTheHigherFloorOnly) {
  EXPECT_EQ(Judge(Make(0.06, 0.039, 3.0), Band::kHalted).band, Band::kHalted);
  EXPECT_EQ(Judge(Make(0.06, 0.041, 3.0), Band::kHalted).band, Band::kProductive);
  EXPECT_EQ(Judge(Make(0.06, 0.039, 3.0), Band::kSpinning).band, Band::kProductive);
  EXPECT_EQ(Judge(Make(0.039, 0.03, 3.0), Band::kHalted).band, Band::kHalted);
}

// A wfi guest with a 4 kHz timer, seen in the lab: on the CPU 84 % of the time, in the guest 1.5 %.
TEST(IpcBands, HostPollingOnBehalfOfAHaltedGuestIsNamed) {
  EXPECT_EQ(Judge(Make(0.84, 0.015, 1.0)), (Judged{Band::kHalted, Rule::kPolling, false}));
  EXPECT_EQ(Judge(Make(0.05, 0.0199, 1.0)).rule, Rule::kResidency);
}

TEST(IpcBands, LowResidencyUnderMuchWaitingIsStarved) {
  VcpuDelta delta = Make(0.3, 0.01, 1.0);
  delta.run_delay_ns = 60'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStarved, true}));
}

// Preempted 2.5 ms into the tick on a core at 70 % of its highest frequency: on the CPU for more
// than the floor, in the guest for less, and nothing booked yet.
TEST(IpcBands, LowResidencyAndRunnableNowIsNeverHalted) {
  VcpuDelta delta = Make(0.025, 0.0175, 3.0);
  delta.state = ThreadState::kRunnable;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStateUnknown, false}));
  delta.run_delay_ns = 11'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kStarved, true}));
  delta.state = ThreadState::kStopped;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kPaused, true}));
  delta.state = ThreadState::kBlocked;
  EXPECT_EQ(Judge(delta).band, Band::kHalted);
}

TEST(IpcBands, AGroupThatDidNotRunIsNotCounted) {
  VcpuDelta delta = Make(1.0, 0, 0);
  delta.time_running_ns = 0;
  EXPECT_EQ(Judge(delta), (Judged{Band::kUnknown, Rule::kNotCounted, false}));
  delta.time_running_ns = static_cast<uint64_t>(0.049 * kInterval);
  EXPECT_EQ(Judge(delta).rule, Rule::kNotCounted);
}

TEST(IpcBands, IpcThresholdsAreHalfOpen) {
  EXPECT_EQ(Judge(Make(1, 1, 0.74)), (Judged{Band::kSpinning, Rule::kIpcLow, false}));
  EXPECT_EQ(Judge(Make(1, 1, 0.75)), (Judged{Band::kUnknown, Rule::kBetweenBands, false}));
  EXPECT_EQ(Judge(Make(1, 1, 0.99)), (Judged{Band::kUnknown, Rule::kBetweenBands, false}));
  EXPECT_EQ(Judge(Make(1, 1, 1.0)), (Judged{Band::kProductive, Rule::kIpcHigh, false}));
}

TEST(IpcBands, ThresholdsAreOptions) {
  const Profile thresholds{.presence = {.halted_enter = 0.5, .halted_leave = 0.6},
                           .ipc_bands = {.spinning_below = 2.0, .productive_from = 3.0},
                           .evidence = {}};
  const auto judge = [&](double residency, double ipc) {
    return JudgeWith(Make(1, residency, ipc), kSlots, residency, thresholds, Band::kNone).band;
  };
  EXPECT_EQ(judge(0.4, 5), Band::kHalted);
  EXPECT_EQ(judge(0.9, 1.9), Band::kSpinning);
  EXPECT_EQ(judge(0.9, 2.5), Band::kUnknown);
  EXPECT_EQ(judge(0.9, 3.5), Band::kProductive);
}

// Missing is not zero: without instructions there is no IPC of 0.
TEST(IpcBands, WithoutInstructionsOnlyHaltedCanBeTold) {
  const EventSlots cycles_only{.cycles = 0};
  EXPECT_EQ(Judge(Make(1, 1, 0), Band::kNone, cycles_only),
            (Judged{Band::kUnknown, Rule::kNoInstructions, false}));
  EXPECT_EQ(Judge(Make(0.05, 0.01, 0), Band::kNone, cycles_only).band, Band::kHalted);
}

TEST(IpcBands, DegradedTellsHaltedFromTheRest) {
  EXPECT_EQ(Judge(Make(1, 0, 0), Band::kNone, EventSlots{}),
            (Judged{Band::kUnknown, Rule::kNoCounters, false}));
  EXPECT_EQ(Judge(Make(0.01, 0, 0), Band::kNone, EventSlots{}).band, Band::kHalted);
}

TEST(IpcBands, WithoutAFrequencyThereIsNoBand) {
  EXPECT_EQ(JudgeWith(Make(1, 1, 1), kSlots, std::nullopt, {}, Band::kNone),
            (Judged{Band::kUnknown, Rule::kNoResidency, false}));
}

TEST(IpcBands, StarvedIsAnOverlay) {
  VcpuDelta delta = Make(0.5, 0.5, 1.0);
  delta.run_delay_ns = 10'000'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kProductive, Rule::kIpcHigh, false}));
  delta.run_delay_ns = 10'100'000;
  EXPECT_EQ(Judge(delta), (Judged{Band::kProductive, Rule::kIpcHigh, true}));
}

TEST(Ipc, IsAbsentWithoutCycles) {
  EXPECT_EQ(Ipc(Make(1, 0, 0), kSlots), std::nullopt);
  EXPECT_EQ(Ipc(Make(1, 1, 1), EventSlots{.cycles = 0}), std::nullopt);
  EXPECT_DOUBLE_EQ(*Ipc(Make(1, 1, 0.5), kSlots), 0.5);
}

TEST(Classifier, IsChosenByWhatIsCounted) {
  const EventSlots all{.cycles = 0, .instructions = 1, .branches = 2, .branch_misses = 3};
  EXPECT_EQ(Choose(ClassifierChoice::kAuto, all), Classifier::kEvidence);
  for (const auto slot : {&EventSlots::cycles, &EventSlots::instructions, &EventSlots::branches,
                          &EventSlots::branch_misses}) {
    EventSlots fewer = all;
    (fewer.*slot).reset();
    EXPECT_EQ(Choose(ClassifierChoice::kAuto, fewer), Classifier::kIpcBands);
    EXPECT_EQ(Choose(ClassifierChoice::kEvidence, fewer), Classifier::kEvidence);
  }
  EXPECT_EQ(Choose(ClassifierChoice::kIpcBands, all), Classifier::kIpcBands);
}

TEST(Classifier, NamesAreReadBack) {
  for (const auto choice :
       {ClassifierChoice::kAuto, ClassifierChoice::kIpcBands, ClassifierChoice::kEvidence}) {
    EXPECT_EQ(ParseClassifierChoice(ToString(choice)), choice);
  }
  EXPECT_EQ(ParseClassifierChoice("Evidence"), std::nullopt);
  EXPECT_EQ(ToString(Classifier::kIpcBands), ToString(ClassifierChoice::kIpcBands));
  EXPECT_EQ(ToString(Classifier::kEvidence), ToString(ClassifierChoice::kEvidence));
}

}  // namespace
}  // namespace vcpulse::core

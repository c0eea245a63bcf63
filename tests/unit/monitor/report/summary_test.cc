#include "monitor/report/summary.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/fixtures/hand_made_recording.h"

namespace vcpulse::report {
namespace {

using ::testing::ElementsAre;

const VcpuSummary& SummaryOfVcpu(const HandMadeRecording& recording, uint32_t vm, uint32_t index) {
  return recording.summary.vms().at(vm).vcpus.at(index);
}

// The core of a report: shares are of time, IPC of the time that was not halted, counts are sums.
TEST(Summary, AddsUpOneVcpu) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Blocked()});
  recording.Tick(1, 1, 2, {Busy(50'000'000, kSpinningLow)});
  recording.Tick(1, 1, 3, {Busy(200'000'000, kProductiveHigh)});
  recording.Tick(1, 1, 4, {Busy(80'000'000, kBetween)});

  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.samples, 5u);
  EXPECT_EQ(vcpu.totals.MeasuredNs(), 4 * kTick_ns);
  EXPECT_EQ(vcpu.Value(metric::Metric::kHalted), 0.25);
  EXPECT_EQ(vcpu.Value(metric::Metric::kSpinning), 0.25);
  EXPECT_EQ(vcpu.Value(metric::Metric::kProductive), 0.25);
  EXPECT_EQ(vcpu.Value(metric::Metric::kUnknown), 0.25);
  EXPECT_EQ(vcpu.RuleShare(core::Rule::kBetweenBands), 0.25);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Raw(), 300'000'000u);
  EXPECT_EQ(vcpu.FindEvent("instructions")->Raw(), 330'000'000u);
  EXPECT_EQ(vcpu.ipc.Mean(), 1.1);
  EXPECT_EQ(vcpu.ipc_by_band[static_cast<size_t>(core::Band::kSpinning)].Mean(), 0.5);
  EXPECT_EQ(vcpu.ipc_by_band[static_cast<size_t>(core::Band::kProductive)].Mean(), 2.0);
  EXPECT_EQ(vcpu.ipc.per_tick.count(), 3u);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kResidency),
                   0.75);  // 300e6 cycles of 400 ms at 1 GHz
}

// Timer ticks of a halted vCPU have an IPC too; it is noise and must not enter the mean.
TEST(Summary, LeavesHaltedIntervalsOutOfIpc) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 1'000'000,
                   .running_ns = 1'000'000,
                   .counts = {1'000'000, 9'000'000},
                   .verdict = {core::Band::kHalted, core::Rule::kResidency, false}}});
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 0).ipc.Mean().has_value());
  recording.Tick(1, 1, 2, {Busy(50'000'000, kSpinningLow)});
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).ipc.Mean(), 0.5);
  // The counts hold both all the same.
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).FindEvent("instructions")->Raw(), 59'000'000u);
}

// Intervals are real widths: the tick after a gap spans both, and weighs twice.
TEST(Summary, WeighsByTimeAcrossAGap) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002})).ok());
  recording.First(1, 1, 0, 2);
  recording.Tick(1, 1, 1, {Busy(50'000'000, kSpinningLow), Blocked()});
  v1::Gap gap;
  gap.set_vm(1);
  gap.set_epoch(1);
  gap.set_first_tick(2);
  gap.set_last_tick(2);
  gap.set_mono_ns(kStart_ns + 2 * kTick_ns);
  gap.set_reason(v1::Gap::REASON_READ_FAILED);
  gap.set_vcpu_index(1);
  gap.set_error(EIO);
  ASSERT_TRUE(recording.Add(gap).ok());
  Did twice = Busy(0, kProductiveHigh);
  twice.enabled_ns = twice.running_ns = 200'000'000;
  twice.counts = {200'000'000, 400'000'000};
  recording.Tick(1, 1, 3, {twice, Blocked()});

  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.totals.MeasuredNs(), 3 * kTick_ns);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kProductive), 2.0 / 3);
  EXPECT_EQ(vcpu.band_ticks[static_cast<size_t>(core::Band::kProductive)], 1u);
  const GapTotals& gaps = recording.summary.vms().at(1).gaps;
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps.begin()->first, GapKey(v1::Gap::REASON_READ_FAILED, 1u, EIO));
  EXPECT_EQ(gaps.begin()->second.ticks, 1u);
  EXPECT_EQ(recording.summary.own_cost().ticks_missed, 0u);
}

// Missing is not zero: an event outside the set has no total, and a group that never ran has no
// counts although its columns are full of zeros.
TEST(Summary, GivesNoNumberToWhatWasNeverCounted) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002}, {"cycles"})).ok());
  recording.First(1, 1, 0, 2);
  const Did never_ran{.enabled_ns = 100'000'000,
                      .verdict = {core::Band::kUnknown, core::Rule::kNotCounted, false}};
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 100'000'000,
                   .counts = {100'000'000},
                   .verdict = {core::Band::kUnknown, core::Rule::kNoInstructions, false}},
                  never_ran});
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).FindEvent("cycles")->Raw(), 100'000'000u);
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).FindEvent("instructions"), nullptr);
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 0).ipc.Mean().has_value());
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 1).FindEvent("cycles")->Raw().has_value());
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 1).FindEvent("cycles")->Scaled().has_value());
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 1).Value(metric::Metric::kResidency).has_value());
}

// The other side of it: a vCPU that was off its CPU all the time did count, namely 0.
TEST(Summary, CountsAValidZeroOfABlockedThread) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Blocked()});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Raw(), 0u);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Scaled(), 0.0);
  EXPECT_EQ(vcpu.Value(metric::Metric::kResidency), 0.0);
  EXPECT_FALSE(vcpu.Value(metric::Metric::kRunning).has_value());
}

// Multiplexed: 30e6 cycles were seen in a quarter of the time, so 120e6 in all of it, an estimate.
TEST(Summary, ScalesAMultiplexedGroupOverTheWholeRun) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 50'000'000,
                   .counts = {30'000'000, 60'000'000},
                   .verdict = kProductiveHigh}});
  recording.Tick(1, 1, 2,
                 {{.enabled_ns = 100'000'000,
                   .counts = {0, 0},
                   .verdict = {core::Band::kUnknown, core::Rule::kNotCounted, false}}});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.Value(metric::Metric::kRunning), 0.25);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Raw(), 30'000'000u);
  EXPECT_EQ(vcpu.FindEvent("cycles")->Scaled(), 120'000'000.0);
  EXPECT_TRUE(vcpu.FindEvent("cycles")->IsEstimate());
  EXPECT_EQ(vcpu.ipc.Mean(), 2.0);  // within one group IPC needs no scaling
  EXPECT_EQ(vcpu.ipc.per_tick.count(), 1u);
}

// Two vCPUs share a CPU: run_delay is a sum over the whole run, starved a share of the ticks' time.
TEST(Summary, SharesOfWaiting) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  Did waits = Busy(200'000'000, kProductiveHigh);
  waits.enabled_ns = waits.running_ns = 40'000'000;
  waits.run_delay_ns = 60'000'000;
  waits.verdict.starved = true;
  recording.Tick(1, 1, 1, {waits});
  recording.Tick(1, 1, 2, {Busy(200'000'000, kProductiveHigh)});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kRunDelay), 0.3);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kRun), 0.7);
  EXPECT_DOUBLE_EQ(*vcpu.Value(metric::Metric::kStarved), 0.5);
}

// A tick without a verdict (its window is not yet full) is measured, but belongs to no band.
TEST(Summary, SharesAreOfTheJudgedTime) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Busy(200'000'000, {})});
  EXPECT_FALSE(SummaryOfVcpu(recording, 1, 0).Value(metric::Metric::kHalted).has_value());
  recording.Tick(1, 1, 2, {Busy(200'000'000, kProductiveHigh)});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.totals.MeasuredNs(), 2 * kTick_ns);
  EXPECT_EQ(vcpu.totals.JudgedNs(), kTick_ns);
  EXPECT_EQ(vcpu.Value(metric::Metric::kProductive), 1.0);
  EXPECT_EQ(vcpu.ipc.per_tick.count(), 1u);
}

// A vCPU is plugged in: the VM's second epoch. Its vCPU 0 is one row over both, no delta is made
// across the border, and the event that only the first epoch had is known to be partial.
TEST(Summary, JoinsTheEpochsOfOneVm) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Busy(200'000'000, kProductiveHigh)});
  ASSERT_TRUE(recording.Add(recording.Set(1, 2, {2001, 2002}, {"cycles"})).ok());
  recording.First(1, 2, 2, 2);
  const Did cycles_only{.enabled_ns = 100'000'000,
                        .running_ns = 100'000'000,
                        .counts = {100'000'000},
                        .verdict = {core::Band::kUnknown, core::Rule::kNoInstructions, false}};
  recording.Tick(1, 2, 3, {cycles_only, cycles_only});

  const VmSummary& vm = recording.summary.vms().at(1);
  EXPECT_EQ(vm.epochs.size(), 2u);
  EXPECT_EQ(vm.samples, 4u);
  const VcpuSummary& first = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(first.totals.MeasuredNs(), 2 * kTick_ns);  // not the 100 ms between the epochs
  EXPECT_EQ(first.FindEvent("cycles")->raw, 200'000'000u);
  EXPECT_EQ(first.FindEvent("cycles")->interval_ns, 2 * kTick_ns);
  EXPECT_EQ(first.FindEvent("instructions")->raw, 200'000'000u);
  EXPECT_EQ(first.FindEvent("instructions")->interval_ns, kTick_ns);
  EXPECT_EQ(first.ipc.Mean(), 2.0);
  const VcpuSummary& second = SummaryOfVcpu(recording, 1, 1);
  EXPECT_EQ(second.totals.MeasuredNs(), kTick_ns);
  EXPECT_EQ(second.FindEvent("instructions"), nullptr);
}

// Columns follow the set's order of events, which another epoch may have changed: by name, always.
TEST(Summary, FindsCountsByNameWhateverTheirOrder) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001}, {"cycles", "instructions"})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1, {Busy(200'000'000, kProductiveHigh)});
  ASSERT_TRUE(recording.Add(recording.Set(1, 2, {2777}, {"instructions", "cycles"})).ok());
  recording.First(1, 2, 2, 1);
  recording.Tick(1, 2, 3,
                 {{.enabled_ns = 100'000'000,
                   .running_ns = 100'000'000,
                   .counts = {200'000'000, 100'000'000},
                   .verdict = kProductiveHigh}});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.FindEvent("cycles")->raw, 200'000'000u);
  EXPECT_EQ(vcpu.FindEvent("instructions")->raw, 400'000'000u);
  EXPECT_EQ(vcpu.ipc.Mean(), 2.0);
  EXPECT_THAT(vcpu.tids, ElementsAre(2001u, 2777u));
}

// By BPF: values as old as the host's tick, of now, and by read(2); one that is no newer counts
// once.
TEST(Summary, TellsKeptValuesFromThoseOfReads) {
  HandMadeRecording recording;
  v1::Session session = HandMadeRecording::Session();
  session.set_reader("bpf");
  ASSERT_TRUE(recording.Add(session).ok());
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002, 2003})).ok());
  timeline::TickEntry first{.vm = 1, .epoch = 1};
  first.sample.wake_ns = kStart_ns;
  first.sample.vcpus.resize(3);
  first.verdicts.resize(3);
  const auto stamp = [&](core::VcpuSample& vcpu, int64_t begin_ns, int64_t end_ns) {
    vcpu.read_begin_ns = kStart_ns + begin_ns;
    vcpu.read_end_ns = kStart_ns + end_ns;
  };
  stamp(first.sample.vcpus[0], -3'000'000, -3'000'000);
  stamp(first.sample.vcpus[1], 100, 100);
  stamp(first.sample.vcpus[2], 100, 600);
  ASSERT_TRUE(recording.Add(first).ok());
  timeline::TickEntry second = first;
  second.previous = &first.sample;
  second.sample.tick = 1;
  second.sample.wake_ns = kStart_ns + kTick_ns;
  stamp(second.sample.vcpus[1], kTick_ns, kTick_ns);
  ASSERT_TRUE(recording.Add(second).ok());
  const OwnCost& cost = recording.summary.own_cost();
  EXPECT_EQ(cost.kept, 3u);
  EXPECT_EQ(cost.age_ns.count(), 1u);
  EXPECT_EQ(cost.age_ns.Max(), 3'000'000);
  EXPECT_EQ(cost.read_ns.count(), 1u);
  EXPECT_EQ(cost.read_ns.Max(), 500);
}

// Two VMs in one tick: each its own sums, but one tick, and one wake to be late.
TEST(Summary, CountsATickOnceForAllVms) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  ASSERT_TRUE(recording.Add(recording.Set(2, 1, {3001, 3002})).ok());
  for (const uint32_t vm : {1u, 2u}) recording.First(vm, 1, 0, vm);
  recording.Tick(1, 1, 1, {Blocked()});
  recording.Tick(2, 1, 1, {Busy(50'000'000, kSpinningLow), Blocked()});
  const OwnCost& cost = recording.summary.own_cost();
  EXPECT_EQ(cost.ticks, 2u);
  EXPECT_EQ(cost.lateness_ns.count(), 2u);
  EXPECT_EQ(cost.lateness_ns.Max(), kLate_ns);
  EXPECT_EQ(cost.read_ns.count(), 6u);
  EXPECT_EQ(cost.read_ns.Max(), kRead_ns);
  EXPECT_EQ(cost.skew_ns.count(), 4u);
  EXPECT_EQ(cost.skew_ns.Max(), 1000 + kRead_ns);  // two vCPUs, 1 us apart
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).Value(metric::Metric::kHalted), 1.0);
  EXPECT_EQ(SummaryOfVcpu(recording, 2, 0).Value(metric::Metric::kSpinning), 1.0);
}

// Missed ticks concern every VM; a gap of one VM says nothing about the tick itself.
TEST(Summary, CountsMissedTicks) {
  HandMadeRecording recording;
  recording.Begin();
  v1::Gap gap;
  gap.set_first_tick(4);
  gap.set_last_tick(6);
  gap.set_reason(v1::Gap::REASON_TICK_MISSED);
  gap.set_mono_ns(kStart_ns);
  ASSERT_TRUE(recording.Add(gap).ok());
  gap.set_mono_ns(kStart_ns + kTick_ns);
  gap.set_first_tick(9);
  gap.set_last_tick(9);
  ASSERT_TRUE(recording.Add(gap).ok());
  v1::Gap of_one_vm = gap;
  of_one_vm.set_vm(1);
  ASSERT_TRUE(recording.Add(of_one_vm).ok());
  EXPECT_EQ(recording.summary.own_cost().ticks_missed, 4u);
  ASSERT_EQ(recording.summary.gaps().size(), 1u);
  EXPECT_EQ(recording.summary.gaps().begin()->second.records, 2u);
  EXPECT_EQ(recording.summary.gaps().begin()->second.first_mono_ns, kStart_ns);
  EXPECT_EQ(recording.summary.gaps().begin()->second.last_mono_ns, kStart_ns + kTick_ns);
}

// Residency divides by what the session says, ref-cycles by the TSC, cycles by the highest
// frequency; where that was not known, by the highest rate seen, never by the time elapsed.
TEST(Summary, DividesResidencyByTheSessionsFrequencies) {
  const Did half{.enabled_ns = 50'000'000,
                 .running_ns = 50'000'000,
                 .counts = {50'000'000, 100'000'000, 25'000'000},
                 .verdict = kProductiveHigh};
  const auto residency_with = [&half](double tsc_hz, double max_hz) {
    HandMadeRecording recording;
    v1::Session session = HandMadeRecording::Session();
    session.set_tsc_hz(tsc_hz);
    session.set_max_hz(max_hz);
    EXPECT_TRUE(recording.Add(session).ok());
    const std::vector<std::string> events = {"cycles", "instructions", "ref-cycles"};
    EXPECT_TRUE(recording.Add(recording.Set(1, 1, {2001}, events)).ok());
    recording.First(1, 1, 0, 1);
    recording.Tick(1, 1, 1, {half});
    return SummaryOfVcpu(recording, 1, 0).Value(metric::Metric::kResidency);
  };
  EXPECT_DOUBLE_EQ(*residency_with(1e9, 4e9), 0.25);  // 25e6 ref-cycles of 100 ms at 1 GHz
  EXPECT_DOUBLE_EQ(*residency_with(0, 2e9), 0.25);    // 50e6 cycles of 100 ms at 2 GHz
  EXPECT_DOUBLE_EQ(*residency_with(0, 0), 0.5);       // seen: 1 GHz
}

// Two samples at one instant, or out of order, are no interval to divide by.
TEST(Summary, PassesOverAnIntervalOfNoTime) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 5, 1);
  recording.Tick(1, 1, 5, {Busy(200'000'000, kProductiveHigh)});
  recording.Tick(1, 1, 4, {Busy(200'000'000, kProductiveHigh)});
  const VcpuSummary& vcpu = SummaryOfVcpu(recording, 1, 0);
  EXPECT_EQ(vcpu.samples, 3u);
  EXPECT_EQ(vcpu.totals.MeasuredNs(), 0);
  EXPECT_FALSE(vcpu.FindEvent("cycles")->Raw().has_value());
}

// A previous sample of another width (a damaged chunk) is not subtracted.
TEST(Summary, NeedsAPreviousSampleOfTheSameWidth) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001, 2002})).ok());
  const core::Sample narrow{.vcpus = std::vector<core::VcpuSample>(1)};
  timeline::TickEntry entry;
  entry.vm = 1;
  entry.epoch = 1;
  entry.sample.vcpus.resize(2);
  for (core::VcpuSample& vcpu : entry.sample.vcpus) {
    vcpu.read_begin_ns = vcpu.read_end_ns = kTick_ns;
  }
  entry.previous = &narrow;
  ASSERT_TRUE(recording.Add(entry).ok());
  EXPECT_EQ(recording.summary.vms().at(1).samples, 1u);
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).totals.MeasuredNs(), 0);
}

// Without any counter residency is the time on a CPU; the session says so.
TEST(Summary, UsesTimeEnabledWhereDegraded) {
  HandMadeRecording recording;
  v1::Session session = HandMadeRecording::Session();
  session.set_residency_method(v1::RESIDENCY_METHOD_TIME_ENABLED);
  ASSERT_TRUE(recording.Add(session).ok());
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001}, {"task-clock"})).ok());
  recording.First(1, 1, 0, 1);
  recording.Tick(1, 1, 1,
                 {{.enabled_ns = 40'000'000,
                   .running_ns = 40'000'000,
                   .counts = {40'000'000},
                   .verdict = {core::Band::kUnknown, core::Rule::kNoCounters, false}}});
  EXPECT_DOUBLE_EQ(*SummaryOfVcpu(recording, 1, 0).Value(metric::Metric::kResidency), 0.4);
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).FindEvent("cycles"), nullptr);
}

// Each chunk repeats session and sets: that must change nothing. Another stream is refused, since
// its VM 1 is another VM.
TEST(Summary, TakesRepeatedContextAndRefusesASecondStream) {
  HandMadeRecording recording;
  recording.Begin();
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 0, 1);
  ASSERT_TRUE(recording.Add(HandMadeRecording::Session()).ok());
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.Tick(1, 1, 1, {Blocked()});
  EXPECT_EQ(recording.summary.vms().at(1).samples, 2u);
  EXPECT_EQ(SummaryOfVcpu(recording, 1, 0).totals.MeasuredNs(), kTick_ns);

  v1::Session other = HandMadeRecording::Session();
  other.set_stream_id("another");
  EXPECT_FALSE(recording.Add(other).ok());
}

// What does not fit its set is counted as unusable; it is not guessed at and does not crash.
TEST(Summary, CountsTicksThatFitNoSet) {
  HandMadeRecording recording;
  recording.Begin();
  recording.First(7, 1, 0, 1);  // no set of VM 7
  ASSERT_TRUE(recording.Add(recording.Set(1, 1, {2001})).ok());
  recording.First(1, 1, 1, 2);  // one vCPU in the set, two in the sample
  recording.First(1, 2, 2, 1);  // no such epoch
  EXPECT_EQ(recording.summary.unattributed_ticks(), 3u);
  EXPECT_EQ(recording.summary.vms().at(1).samples, 0u);
}

}  // namespace
}  // namespace vcpulse::report

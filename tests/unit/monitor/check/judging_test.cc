// Timetable and Judging over records made by hand: what a drawn recording cannot show.

#include "monitor/check/judging.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "monitor/check/timetable.h"

namespace vcpulse::check {
namespace {

using core::Band;

v1::VcpuSet OneVcpu(uint32_t epoch, int64_t mono_ns) {
  v1::VcpuSet set;
  set.set_vm(1);
  set.set_epoch(epoch);
  set.set_mono_ns(mono_ns);
  set.mutable_instance()->set_pid(7);
  set.set_event_set("min");
  set.add_events("cycles");
  set.add_events("instructions");
  set.add_vcpus()->set_index(0);
  return set;
}

v1::LifeCycle Change(uint32_t vm, v1::LifeCycle::Kind kind, int64_t mono_ns) {
  v1::LifeCycle change;
  change.set_vm(vm);
  change.set_kind(kind);
  change.set_mono_ns(mono_ns);
  return change;
}

v1::Marker Mark(const std::string& name, int64_t mono_ns) {
  v1::Marker marker;
  marker.set_name(name);
  marker.set_mono_ns(mono_ns);
  return marker;
}

v1::ClockSnapshot Clock(int64_t mono_ns, int64_t realtime_ns = 0) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  clock.set_realtime_ns(realtime_ns);
  return clock;
}

// To a timetable or a judging.
template <typename Reader, typename Record>
void Add(Reader& reader, Record record, uint64_t sequence = 1) {
  EXPECT_TRUE(reader.Add({.sequence = sequence, .record = std::move(record)}).ok());
}

core::Sample SampleAt(int64_t mono_ns, uint64_t tick, size_t vcpus = 1) {
  core::Sample sample;
  sample.tick = tick;
  sample.wake_ns = mono_ns;
  sample.vcpus.resize(vcpus);
  for (core::VcpuSample& vcpu : sample.vcpus) vcpu.read_begin_ns = vcpu.read_end_ns = mono_ns;
  return sample;
}

timeline::TickEntry TickOf(const core::Sample& previous, const core::Sample& sample,
                           Band band = Band::kSpinning) {
  timeline::TickEntry tick;
  tick.vm = tick.epoch = 1;
  tick.sample = sample;
  tick.previous = &previous;
  tick.verdicts.assign(sample.vcpus.size(), {.band = band});
  return tick;
}

// 1000 ns from 0 on, one VM of one vCPU.
Timetable OneVm(const v1::VcpuSet& set = OneVcpu(1, 0)) {
  Timetable timetable;
  Add(timetable, v1::Session());
  Add(timetable, Clock(0));
  Add(timetable, set);
  Add(timetable, Clock(1000));
  return timetable;
}

const Subject kVcpu{.vm = 1, .vcpu = 0};
const Quantity kSpinning{.metric = Metric::kSpinning};

Watched WatchOne(const Timetable& timetable, const std::vector<timeline::TickEntry>& ticks,
                 const Quantity& quantity = kSpinning, const Subject& subject = kVcpu,
                 const std::vector<v1::VcpuSet>& sets = {OneVcpu(1, 0)}) {
  Judging judging(timetable, timetable.Spans(std::nullopt, 0));
  judging.Watch(subject, quantity, std::nullopt);
  for (const v1::VcpuSet& set : sets) Add(judging, set);
  for (const timeline::TickEntry& tick : ticks) Add(judging, tick);
  return judging.Finish().front();
}

// The thread that samples was held up: whichever tick then has the long interval, and whatever its
// number, only as much of it as a tick is long is known to be of one kind.
TEST(Judging, OfALongIntervalTheLastTickIsJudged) {
  v1::Session session;
  session.set_interval_ns(100);
  Timetable timetable;
  Add(timetable, session);
  Add(timetable, Clock(0));
  Add(timetable, OneVcpu(1, 0));
  Add(timetable, Clock(1000));
  const core::Sample a = SampleAt(0, 5);
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(150, 6))}).tallied.observed, (Bounds{0.15, 1}));
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(151, 6))}).tallied.observed, (Bounds{0.1, 1}));
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(400, 6))}).tallied.observed, (Bounds{0.1, 1}));
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(400, 9))}).tallied.observed, (Bounds{0.1, 1}));
}

// By BPF a running vCPU has values as of the host's own ticks, up to 10 ms apart.
TEST(Judging, AnIntervalOfKeptValuesIsWhole) {
  v1::Session session;
  session.set_interval_ns(1'000'000);
  session.set_reader("bpf");
  Timetable timetable;
  Add(timetable, session);
  Add(timetable, Clock(0));
  Add(timetable, OneVcpu(1, 0));
  Add(timetable, Clock(40'000'000));
  const core::Sample a = SampleAt(0, 5);
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(10'000'000, 15))}).tallied.observed,
            (Bounds{0.25, 1}));
  EXPECT_EQ(WatchOne(timetable, {TickOf(a, SampleAt(20'000'000, 25))}).tallied.observed,
            (Bounds{0.025, 1}));
}

TEST(Judging, WhereTheLengthOfATickIsNotKnownIntervalsAreWhole) {
  const Timetable timetable = OneVm();
  const core::Sample a = SampleAt(0, 5);
  const Watched whole = WatchOne(timetable, {TickOf(a, SampleAt(400, 6))});
  EXPECT_EQ(whole.tallied.observed, (Bounds{0.4, 1}));
  EXPECT_EQ(whole.support.measured_ns, 400);
}

TEST(Judging, WhatFitsNoVcpuSetIsCounted) {
  const Timetable timetable = OneVm();
  const core::Sample a = SampleAt(0, 1);
  const core::Sample two = SampleAt(0, 1, 2);
  timeline::TickEntry other_epoch = TickOf(a, SampleAt(100, 2));
  other_epoch.epoch = 2;
  timeline::TickEntry other_vm = TickOf(a, SampleAt(100, 2));
  other_vm.vm = 2;
  timeline::TickEntry no_verdicts = TickOf(a, SampleAt(100, 2));
  no_verdicts.verdicts.clear();
  Judging judging(timetable, timetable.Spans(std::nullopt, 0));
  Add(judging, OneVcpu(1, 0));
  for (const auto& tick : {other_epoch, other_vm, no_verdicts, TickOf(two, SampleAt(100, 2, 2))}) {
    Add(judging, tick);
  }
  EXPECT_EQ(judging.unattributed_ticks(), 4u);
  Add(judging, TickOf(a, SampleAt(100, 2)));
  EXPECT_EQ(judging.unattributed_ticks(), 4u);
}

TEST(Judging, ASampleOfOtherSizeThanTheOneBeforeBeginsAfresh) {
  const Timetable timetable = OneVm();
  const core::Sample two = SampleAt(0, 1, 2);
  const Watched watched = WatchOne(timetable, {TickOf(two, SampleAt(100, 2))});
  EXPECT_EQ(watched.support.ticks, 0u);
}

TEST(Judging, AnEpochWithoutVcpusHasNoSamples) {
  v1::VcpuSet none = OneVcpu(1, 0);
  none.clear_vcpus();
  none.add_unopened_vcpus()->set_index(0);
  const core::Sample a = SampleAt(0, 1, 0);
  const Watched watched = WatchOne(OneVm(none), {TickOf(a, SampleAt(100, 2, 0))});
  EXPECT_EQ(watched.support.ticks, 0u);
  EXPECT_EQ(watched.support.judged_ns, 1000);
}

TEST(Judging, TakesTicksOfANanosecondAndNoneThatGoBackwards) {
  const Timetable timetable = OneVm();
  const core::Sample a = SampleAt(10, 1);
  const Watched one = WatchOne(timetable, {TickOf(a, SampleAt(11, 2))});
  EXPECT_EQ(one.support.ticks, 1u);
  EXPECT_EQ(one.tallied.observed, (Bounds{0.001, 1}));
  const Watched backwards =
      WatchOne(timetable,
               {TickOf(a, SampleAt(10, 2)), TickOf(a, SampleAt(5, 3)), TickOf(a, SampleAt(20, 4))});
  EXPECT_EQ(backwards.support.ticks, 1u);
}

// The groups of a vCPU: IPC 1 in the main one, 3 in the further one, each of 100 cycles.
timeline::TickEntry WithTwoGroups(const core::Sample& previous) {
  timeline::TickEntry tick = TickOf(previous, SampleAt(1000, 2));
  core::VcpuSample& vcpu = tick.sample.vcpus[0];
  vcpu.time_enabled_ns = 1000;
  vcpu.time_running_ns = 500;
  vcpu.counts = {100, 100};
  tick.sample.further = {{.time_enabled_ns = 1000, .time_running_ns = 500, .counts = {100, 300}}};
  return tick;
}

TEST(Judging, AddsTheGroupsOfCorePmusAndNoOthers) {
  core::Sample previous = SampleAt(0, 1);
  previous.further.resize(1);
  const Quantity median{
      .kind = Quantity::Kind::kPercentile, .metric = Metric::kIpc, .percentile = 50};
  for (const auto& [core_pmus, ipc] :
       std::vector<std::pair<uint32_t, double>>{{0, 1}, {1, 1}, {2, 2}, {9, 2}}) {
    v1::VcpuSet set = OneVcpu(1, 0);
    set.set_core_pmus(core_pmus);
    *set.add_further_groups()->mutable_events() = set.events();
    const Watched watched = WatchOne(OneVm(set), {WithTwoGroups(previous)}, median, kVcpu, {set});
    EXPECT_EQ(watched.tallied.observed, (Bounds{ipc, ipc})) << core_pmus;
  }
}

TEST(Judging, WaitingIsThatOfTheTimeInWhichItWasMeasured) {
  const Timetable timetable = OneVm();
  Judging judging(timetable, {{100, 1000}});
  Add(judging, OneVcpu(1, 0));
  core::Sample a = SampleAt(0, 1);
  a.vcpus[0].has_scheduler_times = true;
  core::Sample b = SampleAt(200, 2);  // half of it is judged
  b.vcpus[0].has_scheduler_times = true;
  b.vcpus[0].run_delay_ns = 100;
  core::Sample c = SampleAt(300, 3);
  c.vcpus[0].has_scheduler_times = true;
  c.vcpus[0].run_delay_ns = 110;
  const core::Sample d = SampleAt(1000, 4);
  Add(judging, TickOf(a, b));
  Add(judging, TickOf(b, c));
  Add(judging, TickOf(c, d));
  judging.Finish();
  ASSERT_EQ(judging.WaitedMoreThan(0.29).size(), 1u);
  EXPECT_DOUBLE_EQ(judging.WaitedMoreThan(0.29)[0].share, 0.3);
  EXPECT_EQ(judging.WaitedMoreThan(0.29)[0].vm, 1u);
  EXPECT_EQ(judging.WaitedMoreThan(0.29)[0].vcpu, 0u);
  EXPECT_TRUE(judging.WaitedMoreThan(0.31).empty());
}

TEST(Judging, TheLastTickOfAnEpochMayComeAfterTheFirstOfTheNext) {
  Timetable timetable;
  v1::Session session;
  session.set_interval_ns(100);
  Add(timetable, session);
  Add(timetable, OneVcpu(1, 0));
  Add(timetable, OneVcpu(2, 200));
  Add(timetable, Clock(500));
  const auto in_epoch = [](timeline::TickEntry tick, uint32_t epoch) {
    tick.epoch = epoch;
    return tick;
  };
  const core::Sample at_0 = SampleAt(0, 0);
  const core::Sample at_100 = SampleAt(100, 1);
  const core::Sample at_200 = SampleAt(200, 2);
  const core::Sample at_300 = SampleAt(300, 3);
  timeline::TickEntry first = in_epoch(TickOf(at_0, at_200), 2);
  first.previous = nullptr;
  const std::vector<timeline::TickEntry> ticks = {
      TickOf(at_0, at_100), first, TickOf(at_100, at_200), in_epoch(TickOf(at_200, at_300), 2)};
  const std::vector<v1::VcpuSet> sets = {OneVcpu(1, 0), OneVcpu(2, 200)};
  const Watched gaps = WatchOne(timetable, ticks, kGaps, {.vm = 1}, sets);
  // From 300 on a sample was due at 400: 100 of 500 ns.
  EXPECT_EQ(gaps.tallied.observed, (Bounds{0.2, 0.2}));
  // Before 200 no sample was due any more when the late one came.
  EXPECT_EQ(gaps.support.ticks, 2u);
  EXPECT_EQ(gaps.support.measured_ns, 200);
  EXPECT_EQ(WatchOne(timetable, ticks, kSpinning, kVcpu, sets).tallied.observed, (Bounds{0.6, 1}));
}

TEST(Timetable, RunsFromTheFirstInstantToTheLastRead) {
  Timetable timetable;
  EXPECT_EQ(timetable.Recording(), (TimeRange{0, 0}));
  Add(timetable, Clock(5), 0);  // context is no instant of the recording
  EXPECT_EQ(timetable.Recording(), (TimeRange{0, 0}));
  Add(timetable, Clock(40));
  Add(timetable, Clock(30));
  EXPECT_EQ(timetable.Recording(), (TimeRange{30, 40}));
  timeline::TickEntry tick;
  tick.sample = SampleAt(50, 1);
  tick.sample.vcpus[0].read_begin_ns = 51;
  tick.sample.vcpus[0].read_end_ns = 55;
  Add(timetable, tick);
  EXPECT_EQ(timetable.Recording(), (TimeRange{30, 53}));
  tick.sample = SampleAt(52, 2);
  Add(timetable, tick);
  EXPECT_EQ(timetable.Recording(), (TimeRange{30, 53}));
}

TEST(Timetable, AloneATickIsARecording) {
  Timetable timetable;
  timeline::TickEntry tick;
  tick.sample = SampleAt(-20, 1);
  Add(timetable, tick);
  EXPECT_EQ(timetable.Recording(), (TimeRange{-20, -20}));
}

TEST(Timetable, KnowsTheWallClockFromTheFirstSnapshot) {
  Timetable timetable;
  EXPECT_EQ(timetable.StartRealtimeNs(), std::nullopt);
  Add(timetable, Clock(100, 5000), 0);
  EXPECT_EQ(timetable.StartRealtimeNs(), std::nullopt);
  Add(timetable, Clock(90, 1));
  EXPECT_EQ(timetable.StartRealtimeNs(), 4990);
  Timetable imported;
  Add(imported, Clock(90, 0));
  EXPECT_EQ(imported.StartRealtimeNs(), std::nullopt);
}

TEST(Timetable, AnEpochEndsByWhatComesFirst) {
  Timetable timetable;
  Add(timetable, OneVcpu(1, 10));
  Add(timetable, OneVcpu(2, 20));
  Add(timetable, Change(0, v1::LifeCycle::KIND_RECORDING_PAUSED, 30));
  Add(timetable, Change(0, v1::LifeCycle::KIND_RECORDING_RESUMED, 40));
  Add(timetable, OneVcpu(3, 50));
  Add(timetable, Change(1, v1::LifeCycle::KIND_VM_PAUSED, 55));
  Add(timetable, Change(9, v1::LifeCycle::KIND_VM_ENDED, 56));
  Add(timetable, Change(1, v1::LifeCycle::KIND_VM_ENDED, 60));
  Add(timetable, Clock(90));
  EXPECT_EQ(timetable.WindowOf(*timetable.FindEpoch(1, 1)), (TimeRange{10, 20}));
  EXPECT_EQ(timetable.WindowOf(*timetable.FindEpoch(1, 2)), (TimeRange{20, 30}));
  EXPECT_EQ(timetable.WindowOf(*timetable.FindEpoch(1, 3)), (TimeRange{50, 60}));
  // From 40 on it was there.
  EXPECT_EQ(timetable.VcpuWindows(1, 0), (std::vector<TimeRange>{{10, 30}, {40, 60}}));
  EXPECT_EQ(timetable.SampledWindows(1), (std::vector<TimeRange>{{10, 30}, {40, 60}}));
  EXPECT_EQ(timetable.VcpuWindows(1, 1), std::vector<TimeRange>());
  EXPECT_EQ(timetable.FindEpoch(1, 4), nullptr);
  EXPECT_EQ(timetable.FindEpoch(2, 1), nullptr);
}

TEST(Timetable, ASetThatIsRepeatedChangesNothing) {
  Timetable timetable;
  Add(timetable, OneVcpu(1, 10));
  Add(timetable, OneVcpu(2, 20));
  Add(timetable, OneVcpu(1, 10), 0);
  Add(timetable, Clock(90));
  EXPECT_EQ(timetable.WindowOf(*timetable.FindEpoch(1, 1)), (TimeRange{10, 20}));
  EXPECT_EQ(timetable.WindowOf(*timetable.FindEpoch(1, 2)), (TimeRange{20, 90}));
}

TEST(Timetable, SaysWhyAVcpuCouldNotBeOpened) {
  v1::VcpuSet set = OneVcpu(1, 10);
  set.add_unopened_vcpus()->set_reason("gone");
  set.add_unopened_vcpus()->set_error(13);
  v1::UnopenedVcpu& both = *set.add_unopened_vcpus();
  both.set_error(13);
  both.set_reason("paranoid");
  Timetable timetable;
  Add(timetable, set);
  const Epoch& epoch = *timetable.FindEpoch(1, 1);
  ASSERT_EQ(epoch.unopened.size(), 3u);
  EXPECT_EQ(epoch.unopened[0].reason, "gone");
  EXPECT_EQ(epoch.unopened[1].reason, "EACCES: Permission denied");
  EXPECT_EQ(epoch.unopened[2].reason, "EACCES: Permission denied; paranoid");
  EXPECT_FALSE(epoch.degraded);
}

TEST(Timetable, PhasesRunToTheNextMarker) {
  Timetable timetable;
  Add(timetable, Clock(0));
  Add(timetable, Mark("a", 10));
  Add(timetable, Mark("b", 20));
  Add(timetable, Mark("a", 15));  // late to come, so it begins where "b" did
  Add(timetable, Mark("c", 30));
  Add(timetable, Clock(50));
  EXPECT_EQ(timetable.Phases(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(timetable.Spans("a", 0), (std::vector<TimeRange>{{10, 20}, {20, 30}}));
  EXPECT_EQ(timetable.Spans("b", 0), (std::vector<TimeRange>{{20, 20}}));
  EXPECT_EQ(timetable.Spans("c", 0), (std::vector<TimeRange>{{30, 50}}));
  EXPECT_EQ(timetable.Spans("c", 5), (std::vector<TimeRange>{{35, 50}}));
  EXPECT_EQ(timetable.Spans("c", 25), (std::vector<TimeRange>{{50, 50}}));
  EXPECT_EQ(timetable.Spans("d", 0), std::vector<TimeRange>());
  EXPECT_EQ(timetable.Spans(std::nullopt, 7), (std::vector<TimeRange>{{7, 50}}));
}

TEST(Timetable, OneStreamAlone) {
  Timetable timetable;
  v1::Session session;
  session.set_stream_id("a");
  Add(timetable, session);
  Add(timetable, session, 0);
  session.set_stream_id("b");
  EXPECT_EQ(timetable.Add({.sequence = 2, .record = session}).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace vcpulse::check

#pragma once

// What tests/data/timeline-v1.vpt holds, in every kind of record and field of schema release 1.
// make_timeline_v1.cc wrote the file; golden_timeline_test.cc reads it. Neither the file nor this
// content is ever changed once released: a later release adds its own.

#include <cstdint>
#include <vector>

#include "monitor/timeline/writer.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline {

inline constexpr StreamId kGoldenStream = {0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x2d, 0x76,
                                           0x31, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xff};

// Sample number `t` of VM `vm`: formulas that a person can check.
inline core::Sample GoldenSample(uint32_t vm, uint64_t t, size_t vcpus, size_t events) {
  const auto n = static_cast<int64_t>(t);
  core::Sample sample{.tick = t + 1,
                      .deadline_ns = 1'000'000'000 + 100'000'000 * n,
                      .wake_ns = 1'000'020'000 + 100'000'000 * n + 137 * (n % 5),
                      .vcpus = {}};
  for (size_t v = 0; v < vcpus; ++v) {
    const auto k = static_cast<int64_t>(v);
    core::VcpuSample vcpu;
    vcpu.read_begin_ns = sample.wake_ns + 900 + 700 * k;
    vcpu.read_end_ns = vcpu.read_begin_ns + 650 + 11 * (n % 3);
    vcpu.time_enabled_ns = (v == 1 ? 40'000 : 99'990'000) * (t + 1);
    vcpu.time_running_ns = v == 2 ? vcpu.time_enabled_ns / 2 : vcpu.time_enabled_ns;
    for (size_t e = 0; e < events; ++e) {
      vcpu.counts[e] = vcpu.time_running_ns * (3 * vm + e) + t * t * (e + 1);
    }
    vcpu.has_scheduler_times = (t + v) % 4 != 3;
    if (vcpu.has_scheduler_times) {
      vcpu.run_ns = 5'000'000'000 + vcpu.time_enabled_ns + 4'000'000 * (t % 2);
      vcpu.run_delay_ns = 70'000 * t * (v + 1);
    }
    vcpu.state = v == 1 ? core::ThreadState::kBlocked : core::ThreadState::kNotRead;
    sample.vcpus.push_back(vcpu);
  }
  return sample;
}

inline std::vector<core::Verdict> GoldenVerdicts(uint64_t t, size_t vcpus) {
  std::vector<core::Verdict> verdicts;
  for (size_t v = 0; v < vcpus; ++v) {
    core::Verdict& verdict = verdicts.emplace_back();
    if (t == 0) continue;
    verdict.band = verdict.raw_band = static_cast<core::Band>(1 + (t + v) % 4);
    verdict.rule = verdict.raw_rule = static_cast<core::Rule>(1 + (t + v) % 13);
    verdict.starved = t == 5;
  }
  return verdicts;
}

inline v1::TimelineRecord GoldenSession() {
  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session.set_stream_id(kGoldenStream.data(), kGoldenStream.size());
  session.set_tool_version("0.1.0");
  session.set_host_name("golden");
  session.set_boot_id("5a0b1c2d-0000-4000-8000-00000000ffff");
  session.set_kernel_release("6.1.0-18-amd64");
  session.set_machine("x86_64");
  session.set_cpu_model("A CPU of the year");
  session.set_online_cpus(2);
  session.set_interval_ns(100'000'000);
  session.set_verdict_window_ns(10'000'000);
  session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.set_tsc_hz(2.4e9);
  session.set_max_hz(3.1e9);
  session.set_scheduling(v1::SCHEDULING_FIFO);
  session.set_degraded_reason("none");
  session.set_timer_slack_ns(1);
  session.mutable_classifier()->set_name("ipc-bands");
  session.mutable_classifier()->set_halted_enter(0.02);
  session.mutable_classifier()->set_halted_leave(0.04);
  session.mutable_classifier()->set_spinning_below(0.75);
  session.mutable_classifier()->set_productive_from(1.0);
  return record;
}

inline v1::TimelineRecord GoldenSet(uint32_t vm, uint32_t epoch, size_t vcpus, size_t events) {
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set.set_vm(vm);
  set.set_epoch(epoch);
  set.set_mono_ns(999'000'000);
  set.mutable_instance()->set_pid(4000 + vm);
  set.mutable_instance()->set_start_time_ticks(123'456);
  set.mutable_instance()->set_name("g\xc3\xa4st");
  set.mutable_instance()->set_uuid("6f1d7b5e-1111-4222-8333-444455556666");
  set.set_event_set("core");
  for (size_t v = 0; v < vcpus; ++v) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(static_cast<uint32_t>(v));
    if (v != 1) vcpu.set_kvm_id(static_cast<uint32_t>(2 * v));
    vcpu.set_tid(static_cast<uint32_t>(4100 + v));
    vcpu.set_start_time_ticks(123'460 + v);
    vcpu.set_found_by("qmp");
    vcpu.set_proof("fd");
  }
  constexpr const char* kNames[] = {"cycles", "instructions", "branches"};
  for (size_t e = 0; e < events; ++e) set.add_events(kNames[e]);
  v1::AbsentEvent& absent = *set.add_absent_events();
  absent.set_event("cache-misses");
  absent.set_error(2);
  absent.set_reason("no such event on this PMU");
  v1::UnopenedVcpu& unopened = *set.add_unopened_vcpus();
  unopened.set_index(9);
  unopened.set_tid(4199);
  unopened.set_error(3);
  unopened.set_reason("thread is gone");
  set.add_notes("a note");
  return record;
}

inline v1::TimelineRecord GoldenGap() {
  v1::TimelineRecord record;
  v1::Gap& gap = *record.mutable_gap();
  gap.set_vm(2);
  gap.set_epoch(1);
  gap.set_first_tick(4);
  gap.set_last_tick(5);
  gap.set_mono_ns(1'450'000'000);
  gap.set_reason(v1::Gap::REASON_READ_FAILED);
  gap.set_vcpu_index(0);
  gap.set_error(5);
  return record;
}

inline v1::TimelineRecord GoldenLifeCycle() {
  v1::TimelineRecord record;
  v1::LifeCycle& change = *record.mutable_life_cycle();
  change.set_vm(1);
  change.set_mono_ns(1'550'000'000);
  change.set_kind(v1::LifeCycle::KIND_VCPUS_CHANGED);
  change.set_detail("vCPU 2 was unplugged");
  change.mutable_instance()->set_pid(4001);
  return record;
}

inline v1::TimelineRecord GoldenClock() {
  v1::TimelineRecord record;
  record.mutable_clock_snapshot()->set_mono_ns(1'650'000'000);
  record.mutable_clock_snapshot()->set_boottime_ns(2'650'000'000);
  record.mutable_clock_snapshot()->set_realtime_ns(1'700'000'000'000'000'000);
  return record;
}

inline v1::TimelineRecord GoldenSummary() {
  v1::TimelineRecord record;
  record.mutable_summary()->set_ticks(10);
  record.mutable_summary()->set_vcpu_samples(33);
  record.mutable_summary()->set_gaps(1);
  record.mutable_summary()->set_cpu_ns(12'345'678);
  record.mutable_summary()->set_end_reason("duration");
  return record;
}

// Writes the content, in four chunks; gives the ticks as a reader must give them back.
inline std::vector<SeenTick> WriteGolden(RecordWriter& writer) {
  std::vector<SeenTick> ticks;
  uint64_t sequence = 0;
  const auto add = [&](v1::TimelineRecord record, int64_t mono_ns) {
    writer.Add(std::move(record), mono_ns);
    ++sequence;
  };
  const auto tick = [&](uint32_t vm, uint32_t epoch, uint64_t t, size_t vcpus, size_t events) {
    std::optional<core::Sample> previous;
    for (const SeenTick& before : ticks) {
      if (before.vm == vm && before.epoch == epoch) previous = before.sample;
    }
    ticks.push_back({++sequence, vm, epoch, GoldenSample(vm, t, vcpus, events),
                     GoldenVerdicts(t, vcpus), previous});
    writer.AddTick(vm, epoch, ticks.back().sample, ticks.back().verdicts);
  };
  const auto flush = [&](int64_t mono_ns) {
    v1::ClockSnapshot clock;
    clock.set_mono_ns(mono_ns);
    clock.set_boottime_ns(mono_ns + 1'000'000'000);
    clock.set_realtime_ns(mono_ns + 1'699'999'998'350'000'000);
    EXPECT_TRUE(writer.Flush(clock).ok());
  };

  add(GoldenSession(), 990'000'000);
  add(GoldenSet(1, 1, 3, 3), 999'000'000);
  add(GoldenSet(2, 1, 1, 0), 999'000'000);
  for (uint64_t t = 0; t < 3; ++t) {
    tick(1, 1, t, 3, 3);
    tick(2, 1, t, 1, 0);
  }
  flush(1'250'000'000);
  add(MarkerRecord("body", 1'260'000'000), 1'260'000'000);
  for (uint64_t t = 3; t < 6; ++t) tick(1, 1, t, 3, 3);
  add(GoldenGap(), 1'450'000'000);
  tick(2, 1, 5, 1, 0);
  flush(1'530'000'000);
  add(GoldenLifeCycle(), 1'550'000'000);
  writer.EndEpoch(1, 1);
  add(GoldenSet(1, 2, 2, 3), 1'560'000'000);
  tick(1, 2, 6, 2, 3);
  tick(2, 1, 6, 1, 0);
  add(GoldenClock(), 1'650'000'000);
  flush(1'660'000'000);
  for (uint64_t t = 7; t < 10; ++t) tick(1, 2, t, 2, 3);
  add(GoldenSummary(), 2'000'000'000);
  flush(2'000'000'000);
  return ticks;
}

}  // namespace vcpulse::timeline

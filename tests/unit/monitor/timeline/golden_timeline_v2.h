#pragma once

// What tests/data/timeline-v2.vpt holds: all that schema release 2 added to release 1, which are
// profiles, confidence and raw verdicts, further groups (of turns, and of a hybrid host's second
// PMU), markers of phases, pauses, every kind of gap and life-cycle record. make_timeline_v2.cc
// wrote the file; golden_timeline_test.cc reads it. Neither is ever changed once released.

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/timeline/writer.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline::golden_v2 {

inline constexpr StreamId kStream = {0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x2d, 0x76,
                                     0x32, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xff};
inline constexpr int64_t kStart_ns = 2'000'000'000;
inline constexpr int64_t kTick_ns = 100'000'000;
inline constexpr uint64_t kTicks = 40;

inline constexpr uint32_t kInTurns = 1;  // the VM whose groups take turns
inline constexpr uint32_t kHybrid = 2;   // the VM on two core PMUs
inline constexpr size_t kVcpus = 2;

// vCPU 0 works, vCPU 1 halts in even tens of ticks and spins in odd ones. VM 1 has five events in
// two groups, VM 2 two events on each of two PMUs.
inline core::Sample SampleOf(uint32_t vm, uint64_t t) {
  const auto n = static_cast<int64_t>(t);
  core::Sample sample{.tick = t + 1,
                      .deadline_ns = kStart_ns + kTick_ns * (n + 1),
                      .wake_ns = kStart_ns + kTick_ns * (n + 1) + 30'000 + 101 * (n % 7)};
  for (size_t v = 0; v < kVcpus; ++v) {
    // Ticks before this one in which the vCPU ran.
    const uint64_t busy = v == 0 ? t + 1 : 10 * (t / 20) + (t % 20 >= 10 ? t % 20 - 9 : 0);
    core::VcpuSample vcpu;
    vcpu.read_begin_ns = sample.wake_ns + 1000 + 800 * static_cast<int64_t>(v);
    vcpu.read_end_ns = vcpu.read_begin_ns + 700;
    vcpu.time_enabled_ns = 99'900'000 * busy;
    vcpu.time_running_ns = vm == kHybrid ? vcpu.time_enabled_ns / 4 * 3 : vcpu.time_enabled_ns;
    vcpu.counts[0] = vcpu.time_running_ns * 3;                // cycles
    vcpu.counts[1] = vcpu.counts[0] * (v == 0 ? 2 : 1);       // instructions
    if (vm == kInTurns) vcpu.counts[2] = vcpu.counts[1] / 5;  // branches
    vcpu.run_ns = vcpu.time_enabled_ns;
    vcpu.run_delay_ns = 50'000 * busy;
    vcpu.has_scheduler_times = t % 9 != 8;
    if (!vcpu.has_scheduler_times) vcpu.run_ns = vcpu.run_delay_ns = 0;
    const bool halted = v == 1 && t % 20 < 10;
    vcpu.state = halted ? core::ThreadState::kBlocked : core::ThreadState::kNotRead;
    core::GroupSample further;
    further.time_enabled_ns = vcpu.time_enabled_ns;
    further.time_running_ns = vm == kHybrid ? vcpu.time_enabled_ns / 4 : vcpu.time_enabled_ns / 2;
    further.counts[0] = further.time_running_ns * (vm == kHybrid ? 2 : 1);
    further.counts[1] = further.counts[0] / 3;
    sample.vcpus.push_back(vcpu);
    sample.further.push_back(further);
  }
  return sample;
}

inline std::vector<core::Verdict> VerdictsOf(uint64_t t) {
  if (t == 0) return std::vector<core::Verdict>(kVcpus);
  const core::Verdict work{.band = core::Band::kProductive,
                           .rule = core::Rule::kBranchMisses,
                           .confidence_pct = 91,
                           .raw_band = core::Band::kProductive,
                           .raw_rule = core::Rule::kBranchMisses};
  const core::Verdict halted{.band = core::Band::kHalted,
                             .rule = core::Rule::kBlocked,
                             .confidence_pct = 99,
                             .raw_band = core::Band::kHalted,
                             .raw_rule = core::Rule::kBlocked};
  const core::Verdict spin{.band = core::Band::kSpinning,
                           .rule = core::Rule::kTightLoop,
                           .starved = t == 35,
                           .confidence_pct = 83,
                           // The window alone was not sure.
                           .raw_band = t % 4 == 3 ? core::Band::kUnknown : core::Band::kSpinning,
                           .raw_rule = t % 4 == 3 ? core::Rule::kWeak : core::Rule::kTightLoop};
  return {work, t % 20 < 10 ? halted : spin};
}

inline v1::TimelineRecord SessionOf() {
  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session.set_stream_id(kStream.data(), kStream.size());
  session.set_tool_version("0.1.0");
  session.set_host_name("golden-two");
  session.set_boot_id("5a0b1c2d-0000-4000-8000-00000000eeee");
  session.set_kernel_release("6.12.0");
  session.set_machine("x86_64");
  session.set_cpu_model("A hybrid CPU");
  session.set_online_cpus(8);
  session.set_interval_ns(static_cast<uint64_t>(kTick_ns));
  session.set_verdict_window_ns(static_cast<uint64_t>(kTick_ns));
  session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.set_max_hz(3e9);
  session.set_scheduling(v1::SCHEDULING_NORMAL);
  session.set_timer_slack_ns(1);
  session.mutable_classifier()->set_name("auto");
  session.mutable_classifier()->set_halted_enter(0.02);
  session.mutable_classifier()->set_halted_leave(0.04);
  session.mutable_classifier()->set_spinning_below(0.75);
  session.mutable_classifier()->set_productive_from(1.0);
  session.mutable_classifier()->set_profile("generic");
  session.add_core_pmus("cpu_core");
  session.add_core_pmus("cpu_atom");
  session.add_further_max_hz(2e9);
  session.set_residency_blind_spot("a lower bound where the core runs slower");
  return record;
}

// `json` is a whole profile (docs/bands.md).
inline v1::TimelineRecord ProfileOf(std::string json) {
  v1::TimelineRecord record;
  record.mutable_profile()->set_name("generic");
  record.mutable_profile()->set_source("built-in");
  record.mutable_profile()->set_json(std::move(json));
  return record;
}

inline v1::VmInstance InstanceOf(uint32_t vm) {
  v1::VmInstance instance;
  instance.set_pid(5000 + vm);
  instance.set_start_time_ticks(222'000 + vm);
  instance.set_name(vm == kInTurns ? "turns" : "hybrid");
  if (vm == kInTurns) instance.set_uuid("6f1d7b5e-2222-4222-8333-444455556666");
  return instance;
}

inline v1::TimelineRecord SetOf(uint32_t vm) {
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set.set_vm(vm);
  set.set_epoch(1);
  set.set_mono_ns(kStart_ns + 1'000'000);
  *set.mutable_instance() = InstanceOf(vm);
  for (uint32_t v = 0; v < kVcpus; ++v) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(v);
    vcpu.set_kvm_id(v);
    vcpu.set_tid(5000 + 10 * vm + v);
    vcpu.set_start_time_ticks(222'100 + v);
    vcpu.set_found_by(vm == kInTurns ? "debugfs" : "cgroup");
    vcpu.set_proof("fd");
  }
  set.set_event_set("custom");
  set.add_events("cycles");
  set.add_events("instructions");
  v1::EventGroup& further = *set.add_further_groups();
  if (vm == kHybrid) {
    set.set_core_pmus(2);
    set.set_pmu("cpu_core");
    further.set_pmu("cpu_atom");
    further.add_events("cycles");
    further.add_events("instructions");
  } else {
    set.add_events("branches");
    further.add_events("cache-misses");
    further.add_events("r01a8");
    set.add_host_side_events("r01a8");
    v1::AbsentEvent& absent = *set.add_absent_events();
    absent.set_event("ref-cycles");
    absent.set_error(2);
    absent.set_reason("no such event on this PMU");
  }
  set.set_classifier("evidence");
  set.add_notes("a note for people");
  return record;
}

inline v1::TimelineRecord GapOf(v1::Gap::Reason reason, uint64_t first, uint64_t last,
                                int64_t mono_ns) {
  v1::TimelineRecord record;
  v1::Gap& gap = *record.mutable_gap();
  const bool of_one_vm = reason == v1::Gap::REASON_READ_FAILED;
  gap.set_vm(of_one_vm ? kHybrid : 0);
  gap.set_epoch(of_one_vm ? 1 : 0);
  gap.set_first_tick(first);
  gap.set_last_tick(last);
  gap.set_mono_ns(mono_ns);
  gap.set_reason(reason);
  if (of_one_vm) {
    gap.set_vcpu_index(1);
    gap.set_error(5);
  }
  return record;
}

inline v1::TimelineRecord LifeOf(uint32_t vm, v1::LifeCycle::Kind kind, int64_t mono_ns,
                                 const std::string& detail) {
  v1::TimelineRecord record;
  v1::LifeCycle& change = *record.mutable_life_cycle();
  change.set_vm(vm);
  change.set_mono_ns(mono_ns);
  change.set_kind(kind);
  change.set_detail(detail);
  if (vm != 0) *change.mutable_instance() = InstanceOf(vm);
  return record;
}

// Writes the content in chunks of ten ticks; gives the ticks as a reader must give them back.
// Ticks 12 (all VMs), 17 (VM 2 alone), 22 and 23 are missing: their gaps say so.
inline std::vector<SeenTick> Write(RecordWriter& writer, const std::string& profile_json) {
  using v1::Gap;
  using v1::LifeCycle;
  std::vector<SeenTick> ticks;
  uint64_t sequence = 0;
  const auto add = [&](v1::TimelineRecord record, int64_t mono_ns) {
    writer.Add(std::move(record), mono_ns);
    ++sequence;
  };
  const auto tick = [&](uint32_t vm, uint64_t t) {
    std::optional<core::Sample> previous;
    for (const SeenTick& before : ticks) {
      if (before.vm == vm) previous = before.sample;
    }
    ticks.push_back({++sequence, vm, 1, SampleOf(vm, t), VerdictsOf(t), previous});
    writer.AddTick(vm, 1, ticks.back().sample, ticks.back().verdicts);
  };
  const auto at = [](uint64_t t) { return SampleOf(1, t).wake_ns; };
  const auto life = [&](uint32_t vm, LifeCycle::Kind kind, uint64_t t, const char* detail) {
    add(LifeOf(vm, kind, at(t), detail), at(t));
  };

  add(SessionOf(), kStart_ns);
  add(ProfileOf(profile_json), kStart_ns);
  for (const uint32_t vm : {kInTurns, kHybrid}) {
    add(LifeOf(vm, LifeCycle::KIND_VM_FOUND, kStart_ns, "found"), kStart_ns);
    add(SetOf(vm), kStart_ns + 1'000'000);
  }
  add(LifeOf(0, LifeCycle::KIND_VM_SKIPPED, kStart_ns, "TCG"), kStart_ns);
  for (uint64_t t = 0; t < kTicks; ++t) {
    if (t == 3 || t == 10 || t == 30) {
      const char* phase = t == 3 ? "boot" : t == 10 ? "body" : "boot";
      add(MarkerRecord(phase, at(t) - 40'000'000), at(t) - 40'000'000);
    }
    if (t == 12) {
      add(GapOf(Gap::REASON_TICK_MISSED, t + 1, t + 1, at(t)), at(t));
    } else if (t == 22) {
      life(0, LifeCycle::KIND_RECORDING_PAUSED, t, "by a request");
      add(GapOf(Gap::REASON_QUEUE_FULL, t + 1, t + 1, at(t)), at(t));
    } else if (t == 23) {
      add(GapOf(Gap::REASON_SOURCE_LOST, t + 1, t + 1, at(t)), at(t));
      life(0, LifeCycle::KIND_RECORDING_RESUMED, t, "by a request");
    } else {
      tick(kInTurns, t);
      if (t == 17) {
        add(GapOf(Gap::REASON_READ_FAILED, t + 1, t + 1, at(t)), at(t));
      } else {
        tick(kHybrid, t);
      }
    }
    if (t == 26) life(kInTurns, LifeCycle::KIND_VM_PAUSED, t, "SIGSTOP");
    if (t == 28) life(kInTurns, LifeCycle::KIND_VM_RESUMED, t, "");
    if (t == 29) life(kHybrid, LifeCycle::KIND_SET_REDUCED, t, "core");
    if (t % 10 != 9) continue;
    if (t + 1 == kTicks) {
      life(kHybrid, LifeCycle::KIND_VM_ENDED, t, "exit");
      v1::TimelineRecord summary;
      summary.mutable_summary()->set_ticks(kTicks - 3);
      summary.mutable_summary()->set_vcpu_samples(ticks.size() * kVcpus);
      summary.mutable_summary()->set_gaps(4);
      summary.mutable_summary()->set_cpu_ns(7'654'321);
      summary.mutable_summary()->set_end_reason("control");
      add(std::move(summary), at(t) + 1'000'000);
    }
    v1::ClockSnapshot clock;
    clock.set_mono_ns(at(t) + 2'000'000);
    clock.set_boottime_ns(clock.mono_ns() + 3'600'000'000'000);
    clock.set_realtime_ns(clock.mono_ns() + 1'780'000'000'000'000'000);
    EXPECT_TRUE(writer.Flush(clock).ok());
  }
  return ticks;
}

}  // namespace vcpulse::timeline::golden_v2

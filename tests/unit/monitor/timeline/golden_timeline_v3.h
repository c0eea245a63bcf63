#pragma once

// What tests/data/timeline-v3.vpt holds: all that schema release 3 added to release 2, which is the
// proof of a host's counters; statistics: of two sources, of a vCPU that could not be read, and why
// nothing of KVM's was; a window of hot addresses, and a refusal of one. make_golden_timeline.cc
// wrote the file; golden_timeline_test.cc reads it. Neither is ever changed once released.

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/timeline/writer.h"
#include "tests/unit/fixtures/timeline_fixture.h"

namespace vcpulse::timeline::golden_v3 {

inline constexpr StreamId kStream = {0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x2d, 0x76,
                                     0x33, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xff};
inline constexpr int64_t kStart_ns = 3'000'000'000;
inline constexpr int64_t kTick_ns = 100'000'000;
inline constexpr uint64_t kTicks = 40;
inline constexpr uint64_t kTicksPerReading = 10;

// Both vCPUs work all the time.
inline core::Sample SampleOf(uint64_t t) {
  const auto n = static_cast<int64_t>(t);
  core::Sample sample{.tick = t,
                      .deadline_ns = kStart_ns + kTick_ns * n,
                      .wake_ns = kStart_ns + kTick_ns * n + 20'000};
  for (int64_t v = 0; v < 2; ++v) {
    core::VcpuSample vcpu;
    vcpu.read_begin_ns = sample.wake_ns + 1000 + 800 * v;
    vcpu.read_end_ns = vcpu.read_begin_ns + 700;
    vcpu.time_enabled_ns = vcpu.time_running_ns = 99'000'000 * t;
    vcpu.counts[0] = 3 * vcpu.time_running_ns;
    vcpu.counts[1] = 5 * vcpu.time_running_ns;
    vcpu.run_ns = vcpu.time_enabled_ns;
    vcpu.has_scheduler_times = true;
    sample.vcpus.push_back(vcpu);
  }
  return sample;
}

inline v1::TimelineRecord SessionOf() {
  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session.set_stream_id(kStream.data(), kStream.size());
  session.set_tool_version("0.2.0");
  session.set_host_name("golden-three");
  session.set_interval_ns(static_cast<uint64_t>(kTick_ns));
  session.set_verdict_window_ns(static_cast<uint64_t>(kTick_ns));
  session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.set_max_hz(3e9);
  v1::CounterProof& proof = *session.mutable_counter_proof();
  proof.set_outcome(v1::CounterProof::OUTCOME_PROVEN);
  v1::CounterProof::Claim& claim = *proof.add_claims();
  claim.set_id("loop");
  claim.set_state("ok");
  claim.set_answer("2,000,000 instructions expected and counted");
  return record;
}

inline v1::TimelineRecord SetOf() {
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set.set_vm(1);
  set.set_epoch(1);
  set.set_mono_ns(kStart_ns - 1'000'000);
  set.mutable_instance()->set_pid(7001);
  set.mutable_instance()->set_start_time_ticks(333'000);
  set.mutable_instance()->set_name("counted");
  for (uint32_t v = 0; v < 2; ++v) {
    v1::Vcpu& vcpu = *set.add_vcpus();
    vcpu.set_index(v);
    vcpu.set_kvm_id(v);
    vcpu.set_tid(7010 + v);
  }
  set.set_event_set("min");
  set.add_events("cycles");
  set.add_events("instructions");
  return record;
}

// The reading before tick `t`. From the third one on the second vCPU could not be read; from then
// on nothing of KVM's was.
inline v1::TimelineRecord StatisticsOf(uint64_t t) {
  const uint64_t reading = t / kTicksPerReading;
  const int64_t mono_ns = kStart_ns + kTick_ns * static_cast<int64_t>(t) + 30'000;
  v1::TimelineRecord record;
  v1::Statistics& statistics = *record.mutable_statistics();
  statistics.set_vm(1);
  statistics.set_epoch(1);
  statistics.set_mono_ns(mono_ns);
  v1::SourceStatistics& scheduler = *statistics.add_sources();
  scheduler.set_source("scheduler");
  for (const char* name : {"migrations", "voluntary_switches", "involuntary_switches"}) {
    scheduler.add_names(name);
  }
  for (uint32_t v = 0; v < 2; ++v) {
    v1::VcpuStatistics& vcpu = *scheduler.add_vcpus();
    vcpu.set_mono_ns(mono_ns);
    if (v == 1 && reading >= 2) continue;
    vcpu.set_cpu(v + 4);
    for (const uint64_t value : {3 * reading, 100 + reading, 7 * reading}) vcpu.add_values(value);
  }
  if (reading >= 3) {
    statistics.set_kvm_missing("the VMM keeps no descriptor of KVM's statistics");
    return record;
  }
  v1::SourceStatistics& kvm = *statistics.add_sources();
  kvm.set_source("kvm-descriptor");
  for (const char* name : {"exits", "halt_exits", "mmio_exits", "halt_poll_fail_ns"}) {
    kvm.add_names(name);
  }
  for (uint64_t v = 0; v < 2; ++v) {
    v1::VcpuStatistics& vcpu = *kvm.add_vcpus();
    vcpu.set_mono_ns(mono_ns + 1000);
    for (const uint64_t value :
         {1000 * reading, 400 * reading, v * 60 * reading, 250'000'000 * reading}) {
      vcpu.add_values(value);
    }
  }
  return record;
}

inline v1::TimelineRecord HotAddressesOf(int64_t mono_ns, bool refused) {
  v1::TimelineRecord record;
  v1::HotAddresses& hot = *record.mutable_hot_addresses();
  hot.set_vm(1);
  hot.set_epoch(1);
  hot.set_vcpu_index(1);
  hot.set_begin_mono_ns(mono_ns - 1'000'000'000);
  hot.set_mono_ns(mono_ns);
  hot.set_trigger(refused ? v1::HotAddresses::TRIGGER_SPINNING : v1::HotAddresses::TRIGGER_STARVED);
  hot.set_refused("cycles: no counter is free");
  if (refused) return record;
  hot.set_source("kvm-exit");
  hot.set_lost(2);
  hot.set_halted(1);
  hot.add_addresses(0xffffffff81000010);
  hot.add_samples(90);
  hot.add_modes(v1::GUEST_MODE_KERNEL);
  hot.add_addresses(0x401000);
  hot.add_samples(7);
  hot.add_modes(v1::GUEST_MODE_USER);
  hot.set_further_samples(3);
  return record;
}

// All of it, a chunk every ten ticks; gives the ticks as a reader hands them over.
inline std::vector<SeenTick> Write(RecordWriter& writer) {
  std::vector<SeenTick> ticks;
  uint64_t sequence = 0;
  const auto add = [&](v1::TimelineRecord record, int64_t mono_ns) {
    writer.Add(std::move(record), mono_ns);
    ++sequence;
  };
  add(SessionOf(), kStart_ns);
  add(SetOf(), kStart_ns);
  const std::vector<core::Verdict> none(2);
  const core::Verdict work{.band = core::Band::kProductive,
                           .rule = core::Rule::kIpcHigh,
                           .confidence_pct = 60,
                           .raw_band = core::Band::kProductive,
                           .raw_rule = core::Rule::kIpcHigh};
  for (uint64_t t = 0; t < kTicks; ++t) {
    const core::Sample sample = SampleOf(t);
    if (t % kTicksPerReading == 0) add(StatisticsOf(t), sample.wake_ns);
    const std::vector<core::Verdict> verdicts = t == 0 ? none : std::vector(2, work);
    writer.AddTick(1, 1, sample, verdicts);
    ticks.push_back({++sequence, 1, 1, sample, verdicts,
                     t == 0 ? std::nullopt : std::optional(ticks.back().sample)});
    if (t == 24 || t == 31) add(HotAddressesOf(sample.wake_ns, t == 31), sample.wake_ns);
    if (t % 10 != 9) continue;
    v1::ClockSnapshot clock;
    clock.set_mono_ns(sample.wake_ns);
    clock.set_realtime_ns(sample.wake_ns + 1'700'000'000'000'000'000);
    clock.set_boottime_ns(sample.wake_ns);
    if (t + 1 == kTicks) {
      v1::TimelineRecord summary;
      summary.mutable_summary()->set_ticks(kTicks);
      summary.mutable_summary()->set_end_reason("duration");
      add(summary, sample.wake_ns);
    }
    EXPECT_TRUE(writer.Flush(clock).ok());
  }
  return ticks;
}

}  // namespace vcpulse::timeline::golden_v3

#pragma once

// What tests/data/timeline-v4.vpt holds: all that schema release 4 added to release 3, which is the
// NUMA node of each CPU of the host; a window of competitors, and a refusal of one.
// make_golden_timeline.cc wrote the file; golden_timeline_test.cc reads it. Neither is ever changed
// once released.

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/timeline/writer.h"
#include "tests/unit/monitor/timeline/golden_timeline_v3.h"

namespace vcpulse::timeline::golden_v4 {

using golden_v3::kStart_ns;
using golden_v3::kTick_ns;
using golden_v3::kTicksPerReading;
inline constexpr StreamId kStream = {0x67, 0x6f, 0x6c, 0x64, 0x65, 0x6e, 0x2d, 0x76,
                                     0x34, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0xff};
inline constexpr uint64_t kTicks = 30;

// CPUs 0 to 4 are of node 0, 5 and 6 of node 1, of 7 it is not known.
inline v1::TimelineRecord SessionOf() {
  v1::TimelineRecord record = golden_v3::SessionOf();
  v1::Session& session = *record.mutable_session();
  session.set_stream_id(kStream.data(), kStream.size());
  session.set_host_name("golden-four");
  for (uint32_t cpu = 0; cpu < 8; ++cpu) session.add_cpu_nodes(cpu < 5 ? 1 : cpu < 7 ? 2 : 0);
  return record;
}

// Those of release 3, in which vCPU v is on CPU 4 + v; at the second reading vCPU 0 is on CPU 6.
inline v1::TimelineRecord StatisticsOf(uint64_t t) {
  v1::TimelineRecord record = golden_v3::StatisticsOf(t);
  if (t == kTicksPerReading) {
    record.mutable_statistics()->mutable_sources(0)->mutable_vcpus(0)->set_cpu(6);
  }
  return record;
}

inline v1::TimelineRecord CompetitorsOf(int64_t mono_ns, bool refused) {
  v1::TimelineRecord record;
  v1::Competitors& window = *record.mutable_competitors();
  window.set_vm(1);
  window.set_epoch(1);
  window.set_vcpu_index(refused ? 1 : 0);
  window.set_begin_mono_ns(refused ? mono_ns : mono_ns - 1'000'000'000);
  window.set_mono_ns(mono_ns);
  if (refused) {
    window.set_refused("the thread of vCPU 1 has ended");
    return record;
  }
  window.set_ended_by("the thread of vCPU 0 has ended");
  window.set_waited_ns(500'000'000);
  window.set_unattributed_ns(20'000'000);
  window.set_run_delay_ns(510'000'000);
  window.set_lost(3);
  for (const uint32_t cpu : {4, 6}) window.add_cpus(cpu);
  const auto add = [&window](uint32_t tid, uint32_t pid, const char* thread, const char* process,
                             const char* vm, uint64_t ns) {
    v1::Competitor& one = *window.add_competitors();
    one.set_tid(tid);
    one.set_pid(pid);
    one.set_thread_name(thread);
    one.set_process_name(process);
    one.set_vm_name(vm);
    one.set_ns(ns);
  };
  add(7011, 7001, "CPU 1/KVM", "qemu-system-x86", "counted", 300'000'000);  // vCPU 1 of its own VM
  add(8011, 8001, "CPU 0/KVM", "qemu-system-x86", "elsewhere", 100'000'000);
  add(77, 77, "kworker/4:1", "", "", 50'000'000);
  window.mutable_competitors(2)->set_kernel_thread(true);
  add(0, 0, "swapper/4", "", "", 20'000'000);  // 10 ms are of others
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
  add(golden_v3::SetOf(), kStart_ns);
  const core::Verdict starved{.band = core::Band::kUnknown,
                              .rule = core::Rule::kStarved,
                              .starved = true,
                              .raw_band = core::Band::kUnknown,
                              .raw_rule = core::Rule::kStarved};
  for (uint64_t t = 0; t < kTicks; ++t) {
    const core::Sample sample = golden_v3::SampleOf(t);
    if (t % kTicksPerReading == 0) add(StatisticsOf(t), sample.wake_ns);
    const std::vector<core::Verdict> verdicts(2, t == 0 ? core::Verdict() : starved);
    writer.AddTick(1, 1, sample, verdicts);
    ticks.push_back({++sequence, 1, 1, sample, verdicts,
                     t == 0 ? std::nullopt : std::optional(ticks.back().sample)});
    if (t == 14 || t == 21) add(CompetitorsOf(sample.wake_ns, t == 21), sample.wake_ns);
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

}  // namespace vcpulse::timeline::golden_v4

#pragma once

// A recording that never was, for the view: what its vCPUs did is said per tick.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/core/verdict.h"
#include "monitor/timeline/writer.h"
#include "monitor/top/chunk_store.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::top {

using Chunk = std::vector<uint8_t>;

inline constexpr int64_t kSecond_ns = 1'000'000'000;
inline constexpr int64_t kRealtimeAhead_ns = 1'767'225'600'000'000'000;  // 2026-01-01

struct Recording {
  uint32_t vms = 2;
  uint32_t vcpus = 2;
  uint64_t ticks = 100;
  int64_t interval_ns = 100'000'000;
  uint64_t ticks_per_chunk = 10;
  uint8_t stream = 1;
  std::string host = "host1";
  bool degraded = false;
  bool has_realtime = true;
  std::vector<std::pair<uint64_t, std::string>> markers{};  // after that tick
  std::function<core::Band(uint32_t vm, uint32_t vcpu, uint64_t tick)> band =
      [](uint32_t, uint32_t, uint64_t) { return core::Band::kProductive; };
  bool starved = false;
};

inline std::vector<Chunk> ChunksOf(const Recording& recording) {
  std::vector<Chunk> chunks;
  const auto writer = timeline::NewChunkWriter({recording.stream}, [&](std::span<const uint8_t> c) {
    chunks.emplace_back(c.begin(), c.end());
    return absl::OkStatus();
  });
  const std::vector<fakes::Load> loads(recording.vcpus, fakes::Load::kBusy);
  std::vector<fakes::SyntheticVm> vms;
  for (uint32_t vm = 1; vm <= recording.vms; ++vm) {
    vms.emplace_back(loads, recording.interval_ns, vm);
  }
  int64_t now_ns = vms.front().VcpuSet(1, 1).mono_ns();
  v1::TimelineRecord session;
  session.mutable_session()->set_stream_id(std::string(1, static_cast<char>(recording.stream)));
  session.mutable_session()->set_host_name(recording.host);
  session.mutable_session()->set_interval_ns(static_cast<uint64_t>(recording.interval_ns));
  session.mutable_session()->set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.mutable_session()->set_max_hz(3e9);
  if (recording.degraded) session.mutable_session()->set_degraded_reason("no PMU");
  session.mutable_session()->mutable_classifier()->set_name("ipc-bands");
  session.mutable_session()->mutable_classifier()->set_halted_enter(0.02);
  session.mutable_session()->mutable_classifier()->set_halted_leave(0.04);
  session.mutable_session()->mutable_classifier()->set_spinning_below(0.75);
  session.mutable_session()->mutable_classifier()->set_productive_from(1.0);
  writer->Add(std::move(session), now_ns);
  for (uint32_t vm = 1; vm <= recording.vms; ++vm) {
    v1::TimelineRecord set;
    *set.mutable_vcpu_set() = vms[vm - 1].VcpuSet(vm, 1);
    if (recording.degraded) set.mutable_vcpu_set()->set_event_set("degraded");
    writer->Add(std::move(set), now_ns);
  }
  std::vector<core::Verdict> verdicts(recording.vcpus);
  for (uint64_t tick = 0; tick < recording.ticks; ++tick) {
    for (uint32_t vm = 1; vm <= recording.vms; ++vm) {
      for (uint32_t v = 0; v < recording.vcpus; ++v) {
        const core::Band band = recording.band(vm, v, tick);
        verdicts[v] = {.band = band,
                       .rule = core::Rule::kIpcHigh,
                       .starved = recording.starved,
                       .confidence_pct = 90,
                       .raw_band = band,
                       .raw_rule = core::Rule::kIpcHigh};
      }
      const core::Sample& sample = vms[vm - 1].Next();
      now_ns = sample.wake_ns;
      writer->AddTick(vm, 1, sample, verdicts);
    }
    for (const auto& [after, name] : recording.markers) {
      if (after != tick) continue;
      v1::TimelineRecord marker;
      marker.mutable_marker()->set_mono_ns(now_ns + 1000);
      marker.mutable_marker()->set_name(name);
      writer->Add(std::move(marker), now_ns + 1000);
    }
    if ((tick + 1) % recording.ticks_per_chunk != 0 && tick + 1 != recording.ticks) continue;
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns);
    if (recording.has_realtime) clock.set_realtime_ns(now_ns + kRealtimeAhead_ns);
    EXPECT_TRUE(writer->Flush(clock).ok());
  }
  return chunks;
}

inline void AddAll(ChunkStore& store, const std::vector<Chunk>& chunks,
                   const std::string& agent = "") {
  for (const Chunk& chunk : chunks) EXPECT_TRUE(store.Add(agent, chunk).ok());
}

inline bool NeverStop() { return false; }

}  // namespace vcpulse::top

#pragma once

// Recordings and counts whose metrics follow from a few numbers in the test.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/prometheus/stream_metrics.h"
#include "monitor/prometheus/vcpu_metrics.h"
#include "tests/fakes/collecting_writer.h"

namespace vcpulse::prometheus {

inline constexpr int64_t kTick_ns = 100'000'000;

// What a vCPU did in one tick.
struct DidInTick {
  uint64_t enabled_ns = kTick_ns;
  uint64_t running_ns = kTick_ns;
  uint64_t cycles = 1000;
  uint64_t instructions = 2000;
  std::optional<uint64_t> run_delay_ns = 0;
  core::Verdict verdict{.band = core::Band::kProductive};
};

// A recording that is counted while it is made.
class CountedRecording {
 public:
  explicit CountedRecording(MetricsLevel level = MetricsLevel::kVcpu)
      : metrics(VcpuMetrics::Create(level)) {
    auto collecting = std::make_unique<fakes::CollectingWriter>();
    kept = collecting.get();
    writer = metrics->Count(std::move(collecting));
    v1::TimelineRecord record;
    record.mutable_session()->set_tool_version("1.2.3");
    record.mutable_session()->set_reader("bpf");
    record.mutable_session()->set_agent_id("host-a");
    record.mutable_session()->add_labels()->set_key("KEY");
    record.mutable_session()->mutable_labels(0)->set_value("rack \"12\"");
    writer->Add(record, 0);
  }

  void AddSet(uint32_t vm, uint32_t epoch, const std::string& name,
              std::vector<std::string> events = {"cycles", "instructions"}, uint32_t vcpus = 1,
              uint32_t pid = 0) {
    v1::TimelineRecord record;
    v1::VcpuSet& set = *record.mutable_vcpu_set();
    set.set_vm(vm);
    set.set_epoch(epoch);
    set.mutable_instance()->set_pid(pid > 0 ? pid : 1000 + vm);
    set.mutable_instance()->set_name(name);
    for (const std::string& event : events) set.add_events(event);
    for (uint32_t i = 0; i < vcpus; ++i) set.add_vcpus()->set_index(i);
    writer->Add(record, 0);
    samples_[{vm, epoch}].vcpus.resize(vcpus);
  }

  // The tick after the one before, or the one of this number; each vCPU does the same.
  void AddTick(uint32_t vm, uint32_t epoch, const DidInTick& did,
               std::optional<uint64_t> tick = std::nullopt, int64_t late_ns = 20'000) {
    core::Sample& sample = samples_.at({vm, epoch});
    const uint64_t before = sample.tick;
    sample.tick = tick.value_or(before + 1);
    sample.deadline_ns = static_cast<int64_t>(sample.tick) * kTick_ns;
    sample.wake_ns = sample.deadline_ns + late_ns;
    for (core::VcpuSample& vcpu : sample.vcpus) {
      vcpu.read_begin_ns = sample.deadline_ns;
      vcpu.read_end_ns = sample.deadline_ns;
      vcpu.time_enabled_ns += did.enabled_ns;
      vcpu.time_running_ns += did.running_ns;
      vcpu.counts[0] += did.cycles;
      vcpu.counts[1] += did.instructions;
      vcpu.has_scheduler_times = did.run_delay_ns.has_value();
      vcpu.run_delay_ns += did.run_delay_ns.value_or(0);
    }
    writer->AddTick(vm, epoch, sample,
                    std::vector<core::Verdict>(sample.vcpus.size(), did.verdict));
  }

  void AddGap(v1::Gap::Reason reason, uint64_t first, uint64_t last) {
    v1::TimelineRecord record;
    record.mutable_gap()->set_reason(reason);
    record.mutable_gap()->set_first_tick(first);
    record.mutable_gap()->set_last_tick(last);
    writer->Add(record, 0);
  }

  void EndVm(uint32_t vm, int64_t mono_ns) {
    v1::TimelineRecord record;
    record.mutable_life_cycle()->set_vm(vm);
    record.mutable_life_cycle()->set_kind(v1::LifeCycle::KIND_VM_ENDED);
    writer->Add(record, mono_ns);
  }

  void FlushAt(int64_t mono_ns) {
    v1::ClockSnapshot clock;
    clock.set_mono_ns(mono_ns);
    EXPECT_TRUE(writer->Flush(clock).ok());
  }

  std::string Text() const { return metrics->Text(); }
  // What the only series that begins so is; "" where there is none, "?" where there are more.
  std::string ValueOf(const std::string& series) const {
    const std::string text = "\n" + Text();
    const size_t found = text.find("\n" + series);
    if (found == std::string::npos) return "";
    if (text.find("\n" + series, found + 1) != std::string::npos) return "?";
    const size_t end = text.find('\n', found + 1);
    const size_t space = text.rfind(' ', end);
    return text.substr(space + 1, end - space - 1);
  }

  std::unique_ptr<VcpuMetrics> metrics;
  std::unique_ptr<timeline::RecordWriter> writer;
  fakes::CollectingWriter* kept = nullptr;

 private:
  std::map<std::pair<uint32_t, uint32_t>, core::Sample> samples_;
};

// Each number another one.
inline stream::Uplink::Stats FullUplinkStats() {
  stream::Uplink::Stats stats;
  stats.connected = true;
  uint64_t next = 2;
  for (uint64_t* value :
       {&stats.connects, &stats.sent_chunks, &stats.acknowledged_chunks, &stats.lost_chunks,
        &stats.lost_records, &stats.waiting_chunks, &stats.spool_bytes, &stats.spool_memory_bytes,
        &stats.queue_bytes, &stats.spool_limit_bytes}) {
    *value = next++;
  }
  return stats;
}

inline stream::Collector::Stats FullCollectorStats() {
  stream::Collector::Stats stats;
  uint64_t next = 2;
  for (uint64_t* value : {&stats.connections, &stats.accepted, &stats.refused, &stats.malformed,
                          &stats.commits, &stats.pending_bytes, &stats.followers}) {
    *value = next++;
  }
  stats.storage_error = "no space left";
  for (const char* id : {"host-a.example", "host \"b\"\n\xFF"}) {
    stream::Collector::AgentStats agent;
    agent.agent_id = id;
    agent.host_name = "host of " + agent.agent_id;
    for (uint64_t* value : {&agent.connections, &agent.streams, &agent.chunks, &agent.bytes,
                            &agent.duplicates, &agent.gaps, &agent.lost_records, &agent.errors}) {
      *value = next++;
    }
    agent.lag_ns = 250'000'000;
    agent.last_chunk_realtime_ns = 1'700'000'000'500'000'000;
    stats.agents.push_back(agent);
  }
  return stats;
}

}  // namespace vcpulse::prometheus

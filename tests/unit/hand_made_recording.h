#pragma once

// A timeline made by hand, record by record, so that every number of a report follows from a few
// numbers in the test.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// What one vCPU did in one interval.
struct Did {
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
  std::vector<uint64_t> counts{};  // in the order of the set's events
  uint64_t run_delay_ns = 0;
  core::Verdict verdict{};
  std::vector<core::GroupSample> further{};  // what its further groups saw
};

inline constexpr int64_t kStart_ns = 5'000'000'000;  // of the recording
inline constexpr int64_t kTick_ns = 100'000'000;
inline constexpr int64_t kLate_ns = 20'000;  // every wake
inline constexpr int64_t kRead_ns = 500;     // each vCPU; they begin 1 us apart

inline constexpr core::Verdict kHaltedBlocked{core::Band::kHalted, core::Rule::kBlocked, false};
inline constexpr core::Verdict kSpinningLow{core::Band::kSpinning, core::Rule::kIpcLow, false};
inline constexpr core::Verdict kProductiveHigh{core::Band::kProductive, core::Rule::kIpcHigh,
                                               false};
inline constexpr core::Verdict kBetween{core::Band::kUnknown, core::Rule::kBetweenBands, false};

// Off the CPU throughout: nothing ran, and that is a valid zero.
inline Did Blocked() { return {.counts = {0, 0}, .verdict = kHaltedBlocked}; }

// In guest mode throughout, at 1 GHz.
inline Did Busy(uint64_t instructions, core::Verdict verdict) {
  return {.enabled_ns = 100'000'000,
          .running_ns = 100'000'000,
          .counts = {100'000'000, instructions},
          .verdict = verdict};
}

class HandMadeRecording {
 public:
  Summary summary;
  bool reads_take_time = true;  // false: as of an import

  static v1::Session Session() {
    v1::Session session;
    session.set_stream_id("0123456789abcdef");
    session.set_tool_version("0.1.0");
    session.set_host_name("host1");
    session.set_kernel_release("6.1.0");
    session.set_machine("x86_64");
    session.set_cpu_model("A CPU");
    session.set_online_cpus(4);
    session.set_interval_ns(100'000'000);
    session.set_verdict_window_ns(100'000'000);
    session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
    session.set_max_hz(1e9);
    session.set_scheduling(v1::SCHEDULING_NORMAL);
    v1::ClassifierSettings& classifier = *session.mutable_classifier();
    classifier.set_name("ipc-bands");
    classifier.set_halted_enter(0.02);
    classifier.set_halted_leave(0.04);
    classifier.set_spinning_below(0.75);
    classifier.set_productive_from(1.0);
    return session;
  }

  // A set of vCPUs 0, 1, ... with these TIDs.
  static v1::VcpuSet Set(uint32_t vm, uint32_t epoch, const std::vector<uint32_t>& tids,
                         const std::vector<std::string>& events = {"cycles", "instructions"}) {
    v1::VcpuSet set;
    set.set_vm(vm);
    set.set_epoch(epoch);
    set.set_mono_ns(kStart_ns);
    set.mutable_instance()->set_pid(1000 + vm);
    set.mutable_instance()->set_name("guest" + std::to_string(vm));
    set.set_event_set("min");
    for (const std::string& event : events) set.add_events(event);
    uint32_t index = 0;
    for (const uint32_t tid : tids) {
      v1::Vcpu* vcpu = set.add_vcpus();
      vcpu->set_index(index++);
      vcpu->set_tid(tid);
    }
    return set;
  }

  template <typename Record>
  absl::Status Add(Record record) {
    return summary.Add({.sequence = ++sequence_, .record = std::move(record)});
  }

  void Begin() {
    EXPECT_TRUE(Add(Session()).ok());
    v1::ClockSnapshot clock;
    // One second later than the start, which is 2026-01-02 03:04:05.250 UTC.
    clock.set_mono_ns(kStart_ns + 1'000'000'000);
    clock.set_realtime_ns(1'767'323'046'250'000'000);
    // As the context of a chunk comes: sequence 0, and not a record of the stream's own.
    EXPECT_TRUE(summary.Add({.sequence = 0, .record = clock}).ok());
  }

  // The first sample of an epoch: all zero, at tick `tick`.
  void First(uint32_t vm, uint32_t epoch, uint64_t tick, size_t vcpus, size_t further_groups = 0) {
    timeline::TickEntry entry;
    entry.vm = vm;
    entry.epoch = epoch;
    entry.sample = Stamped(tick, vcpus);
    entry.sample.further.resize(vcpus * further_groups);
    entry.verdicts.resize(vcpus);
    EXPECT_TRUE(Add(entry).ok());
    samples_[{vm, epoch}] = entry.sample;
  }

  // The next sample: each vCPU did that since the one before it, however long that is ago.
  void Tick(uint32_t vm, uint32_t epoch, uint64_t tick, const std::vector<Did>& did) {
    core::Sample& previous = samples_.at({vm, epoch});
    timeline::TickEntry entry;
    entry.vm = vm;
    entry.epoch = epoch;
    entry.sample = Stamped(tick, did.size());
    entry.previous = &previous;
    for (size_t i = 0; i < did.size(); ++i) {
      core::VcpuSample& now = entry.sample.vcpus[i];
      const core::VcpuSample& before = previous.vcpus[i];
      now.time_enabled_ns = before.time_enabled_ns + did[i].enabled_ns;
      now.time_running_ns = before.time_running_ns + did[i].running_ns;
      for (size_t slot = 0; slot < did[i].counts.size(); ++slot) {
        now.counts[slot] = before.counts[slot] + did[i].counts[slot];
      }
      now.run_ns = before.run_ns + did[i].enabled_ns;
      now.run_delay_ns = before.run_delay_ns + did[i].run_delay_ns;
      entry.verdicts.push_back(did[i].verdict);
      for (size_t g = 0; g < did[i].further.size(); ++g) {
        core::GroupSample group = previous.further.empty()
                                      ? core::GroupSample()
                                      : previous.further[i * did[i].further.size() + g];
        group.time_enabled_ns += did[i].further[g].time_enabled_ns;
        group.time_running_ns += did[i].further[g].time_running_ns;
        for (size_t slot = 0; slot < core::kMaxEvents; ++slot) {
          group.counts[slot] += did[i].further[g].counts[slot];
        }
        entry.sample.further.push_back(group);
      }
    }
    EXPECT_TRUE(Add(entry).ok());
    previous = entry.sample;
  }

 private:
  core::Sample Stamped(uint64_t tick, size_t vcpus) const {
    core::Sample sample;
    sample.tick = tick;
    sample.deadline_ns = kStart_ns + static_cast<int64_t>(tick) * kTick_ns;
    sample.wake_ns = sample.deadline_ns + kLate_ns;
    for (size_t i = 0; i < vcpus; ++i) {
      core::VcpuSample vcpu;
      vcpu.read_begin_ns = sample.wake_ns + 1000 * static_cast<int64_t>(i);
      vcpu.read_end_ns = vcpu.read_begin_ns + (reads_take_time ? kRead_ns : 0);
      vcpu.has_scheduler_times = true;
      sample.vcpus.push_back(vcpu);
    }
    return sample;
  }

  uint64_t sequence_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, core::Sample> samples_;
};

// As `vcpulse import` makes it: counts of one vCPU, and nothing of a host.
struct ImportedRecording : HandMadeRecording {
  ImportedRecording() {
    reads_take_time = false;
    v1::Session session = Session();
    for (std::string* text : {session.mutable_host_name(), session.mutable_kernel_release(),
                              session.mutable_machine(), session.mutable_cpu_model()}) {
      text->clear();
    }
    session.set_online_cpus(0);
    session.set_scheduling(v1::SCHEDULING_UNSPECIFIED);
    session.set_residency_method(v1::RESIDENCY_METHOD_HIGHEST_RATE);
    session.set_max_hz(0);
    EXPECT_TRUE(Add(session).ok());
    v1::VcpuSet set = Set(1, 1, {0});
    set.mutable_instance()->set_pid(0);
    EXPECT_TRUE(Add(set).ok());
    First(1, 1, 0, 1);
    Tick(1, 1, 1, {Busy(200'000'000, kProductiveHigh)});
    EXPECT_TRUE(Add(v1::Summary()).ok());
  }
};

// A report of a file that was whole.
inline Report WholeReport(const Summary& summary) {
  timeline::ReadReport read;
  read.chunks = 1;
  read.records = 1;
  read.ended_in_order = true;
  return {.summary = summary, .read = read};
}

}  // namespace vcpulse::report

#pragma once

// Samples of a VM that never was, for tests and benchmarks of the timeline: busy, idle and shared
// vCPUs with the noise seen on real hosts. Integers alone, so that a seed gives the same
// everywhere.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/sample.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::fakes {

enum class Load {
  kBusy,    // always in the guest
  kIdle,    // blocked, a few timer ticks
  kShared,  // half of a CPU
};

class SyntheticVm {
 public:
  // Four events: cycles, instructions, branches, branch-misses.
  static constexpr size_t kEvents = 4;

  // One vCPU per load; ticks of `interval_ns`.
  SyntheticVm(std::vector<Load> loads, int64_t interval_ns, uint64_t seed)
      : loads_(std::move(loads)), interval_ns_(interval_ns), random_(seed | 1) {
    sample_.deadline_ns = 86'400'000'000'000;  // a host that has been up for a day
    sample_.vcpus.resize(loads_.size());
    lag_ns_.resize(loads_.size());
    for (core::VcpuSample& vcpu : sample_.vcpus) Start(vcpu);
  }

  // The next sample; valid until the next call.
  const core::Sample& Next() {
    ++sample_.tick;
    sample_.deadline_ns += interval_ns_;
    sample_.wake_ns = sample_.deadline_ns + 25'000 + Noise(20'000);
    int64_t now_ns = sample_.wake_ns + 800 + Noise(100);
    for (size_t v = 0; v < loads_.size(); ++v) {
      core::VcpuSample& vcpu = sample_.vcpus[v];
      const int64_t elapsed_ns = now_ns - vcpu.read_begin_ns;
      vcpu.read_begin_ns = now_ns;
      now_ns += 600 + Noise(100);
      vcpu.read_end_ns = now_ns;
      Run(v, vcpu, vcpu.time_enabled_ns == 0 ? interval_ns_ : elapsed_ns);
    }
    return sample_;
  }

  // Verdicts as a classifier would give them.
  std::vector<core::Verdict> Verdicts() const {
    std::vector<core::Verdict> verdicts;
    for (const Load load : loads_) {
      const bool idle = load == Load::kIdle;
      verdicts.push_back({.band = idle ? core::Band::kHalted : core::Band::kProductive,
                          .rule = idle ? core::Rule::kResidency : core::Rule::kIpcHigh,
                          .starved = load == Load::kShared,
                          .confidence_pct = static_cast<uint8_t>(idle ? 99 : 95),
                          .raw_band = idle ? core::Band::kHalted : core::Band::kSpinning,
                          .raw_rule = idle ? core::Rule::kResidency : core::Rule::kTightLoop});
    }
    return verdicts;
  }

  v1::VcpuSet VcpuSet(uint32_t vm, uint32_t epoch) const {
    v1::VcpuSet set;
    set.set_vm(vm);
    set.set_epoch(epoch);
    set.set_mono_ns(sample_.deadline_ns);
    set.mutable_instance()->set_pid(4000 + vm);
    set.mutable_instance()->set_name("guest-" + std::to_string(vm));
    set.set_event_set("full");
    for (const char* event : {"cycles", "instructions", "branches", "branch-misses"}) {
      set.add_events(event);
    }
    for (size_t v = 0; v < loads_.size(); ++v) {
      v1::Vcpu* vcpu = set.add_vcpus();
      vcpu->set_index(static_cast<uint32_t>(v));
      vcpu->set_kvm_id(static_cast<uint32_t>(v));
      vcpu->set_tid(static_cast<uint32_t>(4010 + v));
      vcpu->set_start_time_ticks(812'345);
      vcpu->set_found_by("qmp");
      vcpu->set_proof("fd");
    }
    return set;
  }

 private:
  uint64_t Random() {  // xorshift64
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(Random() % static_cast<uint64_t>(std::max<int64_t>(bound, 1)));
  }
  // About normal, of this standard deviation: twelve uniforms have a variance of one.
  int64_t Noise(int64_t deviation) {
    int64_t sum = 0;
    for (int i = 0; i < 12; ++i) sum += Below(deviation);
    return sum - 6 * deviation;
  }
  uint64_t Noisy(int64_t value, int64_t permille) {
    return static_cast<uint64_t>(std::max<int64_t>(0, value + Noise(value / 1000 * permille)));
  }

  // A VM that has been up for an hour or so: all that was counted since its epoch began is large.
  void Start(core::VcpuSample& vcpu) {
    vcpu.read_begin_ns = sample_.deadline_ns;
    vcpu.run_ns = static_cast<uint64_t>(Below(3'600'000'000'000));
    vcpu.run_delay_ns = static_cast<uint64_t>(Below(60'000'000'000));
    vcpu.has_scheduler_times = true;
  }

  void Run(size_t v, core::VcpuSample& vcpu, int64_t elapsed_ns) {
    int64_t enabled_ns = 0;
    int64_t delay_ns = 0;
    vcpu.state = core::ThreadState::kNotRead;
    switch (loads_[v]) {
      case Load::kBusy:
        enabled_ns = elapsed_ns + Noise(2'000);
        delay_ns = Below(4) == 0 ? 3'000 + Below(5'000) : 0;
        break;
      case Load::kIdle:
        enabled_ns = Below(4) == 0 ? 40'000 + Noise(5'000) : 0;
        delay_ns = enabled_ns > 0 ? 4'000 + Noise(1'000) : 0;
        if (enabled_ns == 0) vcpu.state = core::ThreadState::kBlocked;
        break;
      case Load::kShared:
        enabled_ns = elapsed_ns / 2 + Noise(2'000'000);
        delay_ns = elapsed_ns - enabled_ns + Noise(100'000);
        break;
    }
    enabled_ns = std::max<int64_t>(0, enabled_ns);
    const uint64_t cycles = Noisy(enabled_ns * 3, 10);
    const uint64_t instructions = Noisy(static_cast<int64_t>(cycles) * 13 / 10, 10);
    const uint64_t branches = Noisy(static_cast<int64_t>(instructions) / 5, 10);
    vcpu.time_enabled_ns += static_cast<uint64_t>(enabled_ns);
    vcpu.time_running_ns = vcpu.time_enabled_ns;
    vcpu.counts[0] += cycles;
    vcpu.counts[1] += instructions;
    vcpu.counts[2] += branches;
    vcpu.counts[3] += Noisy(static_cast<int64_t>(branches) / 200, 50);
    // run_ns is booked each scheduler tick (4 ms at 250 Hz) or when the thread leaves the CPU.
    const int64_t lag_ns = loads_[v] == Load::kIdle ? 0 : Below(4'000'000);
    vcpu.run_ns += static_cast<uint64_t>(std::max<int64_t>(0, enabled_ns - lag_ns + lag_ns_[v]));
    lag_ns_[v] = lag_ns;
    vcpu.run_delay_ns += static_cast<uint64_t>(std::max<int64_t>(0, delay_ns));
  }

  const std::vector<Load> loads_;
  const int64_t interval_ns_;
  uint64_t random_;
  std::vector<int64_t> lag_ns_;
  core::Sample sample_;
};

}  // namespace vcpulse::fakes

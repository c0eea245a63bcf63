#pragma once

// A VM with nothing behind it: fake counter groups and a /proc in a temporary directory, and a
// clock that a test moves. For the sampler and what stands above it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kvm/counters/counter_group.h"
#include "kvm/events/event_sets.h"
#include "kvm/vm.h"
#include "monitor/sampler/sampler.h"
#include "tests/fakes/fake_perf_events.h"
#include "tests/fakes/proc_dir.h"

namespace vcpulse::fakes {

// CLOCK_MONOTONIC of the tests: each look at it takes 100 ns.
struct FakeClock {
  static inline std::atomic<int64_t> now_ns = 1'000'000'000;
  static int64_t Now() { return now_ns.fetch_add(100) + 100; }
};

class SampledVm {
 public:
  // vCPU threads are first_tid, first_tid + 1, ...
  SampledVm(FakePerfEvents& perf, ProcDir& proc, std::string name, pid_t pid, pid_t first_tid,
            int vcpus)
      : perf_(perf), proc_(proc) {
    vm_.pid = pid;
    vm_.start_time_ticks = 1000;
    vm_.name = std::move(name);
    vm_.accelerator = kvm::Accelerator::kKvm;
    proc_.AddProcess(pid, "qemu-system-x86", {"qemu-system-x86_64"}, {});
    for (int i = 0; i < vcpus; ++i) {
      vm_.vcpus.push_back({.index = i, .tid = first_tid + i, .start_time_ticks = 1000});
      proc_.AddThread(pid, first_tid + i, "CPU " + std::to_string(i) + "/KVM", 1000);
      SetScheduling(i, 0, 0);
    }
  }

  kvm::ThreadKeeper* keeper = nullptr;  // of the epochs that are started

  const kvm::Vm& vm() const { return vm_; }
  kvm::Vm& vm() { return vm_; }
  pid_t tid(int vcpu) const { return vm_.vcpus.at(static_cast<size_t>(vcpu)).tid; }
  FakePerfEvents::Group& group(int vcpu) { return perf_.groups[tid(vcpu)]; }

  // One vCPU did this: times and counts grow.
  void Ran(int vcpu, uint64_t enabled_ns, uint64_t cycles, uint64_t instructions) {
    FakePerfEvents::Group& g = group(vcpu);
    g.time_enabled_ns += enabled_ns;
    g.time_running_ns += enabled_ns;
    g.counts[PERF_COUNT_HW_CPU_CYCLES] += cycles;
    g.counts[PERF_COUNT_HW_INSTRUCTIONS] += instructions;
  }

  void SetScheduling(int vcpu, uint64_t run_ns, uint64_t run_delay_ns) {
    proc_.Write(Task(vcpu) + "/schedstat",
                std::to_string(run_ns) + " " + std::to_string(run_delay_ns) + " 7\n");
  }

  // What a kernel without schedstats prints for every thread.
  void TurnSchedulingOff(int vcpu) { proc_.Write(Task(vcpu) + "/schedstat", "0 0 0\n"); }

  void SetState(int vcpu, char state) {
    proc_.Write(Task(vcpu) + "/stat",
                std::to_string(tid(vcpu)) + " (CPU 0/KVM) " + state +
                    " 1 1 1 0 -1 0 0 0 0 0 1 3 0 0 20 0 7 0 1000 0 0 0 1 1 0 0 0 0 0 0 0 1 0 0 17 "
                    "0 0 0 0 0 0 1 1 1 1 1 1 1 0\n");
  }

  std::unique_ptr<sampler::Epoch> StartEpoch(uint32_t vm_number, uint32_t epoch, size_t buffers,
                                             kvm::EventSet set = kvm::EventSet::kMin) {
    std::vector<kvm::VcpuGroups> groups;
    std::vector<kvm::RefusedEvent> refused;
    for (const kvm::Vcpu& vcpu : vm_.vcpus) {
      groups.emplace_back().push_back(
          std::move(kvm::CounterGroup::Open(perf_, vcpu.tid, kvm::EventsOf(set), refused).value));
    }
    return StartEpoch(vm_number, epoch, buffers, std::move(groups));
  }

  // With these groups, one entry per vCPU.
  std::unique_ptr<sampler::Epoch> StartEpoch(uint32_t vm_number, uint32_t epoch, size_t buffers,
                                             std::vector<kvm::VcpuGroups> groups) {
    kvm::OpenedGroups opened;
    opened.vcpus = vm_.vcpus;
    opened.groups = std::move(groups);
    for (const kvm::Vcpu& vcpu : vm_.vcpus) {
      opened.scheduling.push_back(
          std::move(kvm::ThreadScheduling::Open(proc_.root(), vm_.pid, vcpu.tid).value));
    }
    return *sampler::Epoch::Start(vm_number, epoch, opened, buffers, keeper);
  }

 private:
  std::string Task(int vcpu) const {
    return "proc/" + std::to_string(vm_.pid) + "/task/" + std::to_string(tid(vcpu));
  }

  FakePerfEvents& perf_;
  ProcDir& proc_;
  kvm::Vm vm_;
};

}  // namespace vcpulse::fakes

#pragma once

// Real kernel events that open on any machine: each hardware event is replaced by a software one,
// two are refused. What is measured with it is the cost of groups and reads, not of a PMU.

#include <cerrno>

#include "kvm/base/fd.h"
#include "kvm/counters/perf_events.h"

namespace vcpulse::bench {

class SoftwarePerfEvents final : public kvm::PerfEvents {
 public:
  kvm::OrErrno<Fd> Open(perf_event_attr& attr, pid_t tid, int group_fd) override {
    if (attr.type == PERF_TYPE_HARDWARE) {
      switch (attr.config) {
        case PERF_COUNT_HW_CPU_CYCLES:
          attr.config = PERF_COUNT_SW_TASK_CLOCK;
          break;
        case PERF_COUNT_HW_INSTRUCTIONS:
          attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
          break;
        case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
          attr.config = PERF_COUNT_SW_CPU_MIGRATIONS;
          break;
        case PERF_COUNT_HW_BRANCH_MISSES:
          attr.config = PERF_COUNT_SW_PAGE_FAULTS;
          break;
        default:
          return {.error = ENOENT};
      }
      attr.type = PERF_TYPE_SOFTWARE;
    }
    return kernel_.Open(attr, tid, group_fd);
  }
  kvm::OrErrno<Fd> OpenOnCpu(perf_event_attr& attr, int cpu) override {
    return kernel_.OpenOnCpu(attr, cpu);
  }
  kvm::OrErrno<uint64_t> Id(int fd) override { return kernel_.Id(fd); }
  int EnableGroup(int leader_fd) override { return kernel_.EnableGroup(leader_fd); }
  kvm::OrErrno<size_t> Read(int leader_fd, std::span<uint64_t> words) override {
    return kernel_.Read(leader_fd, words);
  }
  kvm::EventPage Page(int leader_fd) override { return kernel_.Page(leader_fd); }

 private:
  kvm::KernelPerfEvents kernel_;
};

}  // namespace vcpulse::bench

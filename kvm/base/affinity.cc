#include "kvm/base/affinity.h"

#include <sched.h>

#include <cstddef>
#include <memory>

namespace vcpulse {
namespace {

constexpr int kMostCpus = 8192;  // of Linux

struct CpuSetFree {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, CpuSetFree>;

size_t Bytes() { return CPU_ALLOC_SIZE(kMostCpus); }

CpuSet NoCpus() {
  CpuSet set(CPU_ALLOC(kMostCpus));
  CPU_ZERO_S(Bytes(), set.get());
  return set;
}

}  // namespace

std::vector<int> OwnCpus() {
  const CpuSet set = NoCpus();
  std::vector<int> cpus;
  if (sched_getaffinity(0, Bytes(), set.get()) == 0) {
    for (int cpu = 0; cpu < kMostCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), Bytes(), set.get())) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

bool KeepToCpus(pid_t tid, std::span<const int> cpus) {
  const CpuSet set = NoCpus();
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < kMostCpus) CPU_SET_S(static_cast<size_t>(cpu), Bytes(), set.get());
  }
  return sched_setaffinity(tid, Bytes(), set.get()) == 0;
}

}  // namespace vcpulse

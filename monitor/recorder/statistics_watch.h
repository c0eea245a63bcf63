#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvm/statistics/vm_statistics.h"
#include "kvm/vm.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::recorder {

// Reads the statistics of the vCPUs of one epoch when it is time: after its first sample, once a
// second, and where a band changes (four times a second at most). Control thread: a reading takes
// tens of us per vCPU.
class StatisticsWatch {
 public:
  // As kvm::VmStatistics, which is made at the first reading.
  StatisticsWatch(std::string root, kvm::Vm vm, std::string kernel_release, int64_t (*now_ns)());

  // Whether to read now (CLOCK_MONOTONIC), where these are the latest verdicts.
  bool IsDue(int64_t now_ns, std::span<const core::Verdict> verdicts);
  // Fills in the sources. False where there is nothing to say.
  bool Read(v1::Statistics& record);

 private:
  std::string root_;
  kvm::Vm vm_;
  std::string kernel_release_;
  int64_t (*now_ns_)();
  std::optional<kvm::VmStatistics> statistics_;
  std::optional<int64_t> read_at_ns_;
  std::vector<core::Band> bands_;
};

}  // namespace vcpulse::recorder

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/residency.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict_window.h"

namespace vcpulse::core {

// Turns the samples of one epoch, in order, into verdicts. The same samples give the same verdicts,
// live and offline. Memory is taken by the constructor; one thread.
class EpochClassifier {
 public:
  // What is counted on each vCPU.
  struct Layout {
    size_t vcpus = 0;
    EventSlots slots;      // of the first group
    size_t core_pmus = 1;  // the first so many groups have the same slots, one per core PMU
  };

  // `interval_ns` is the nominal tick of the session.
  EpochClassifier(const Layout& layout, const IpcBandsThresholds& thresholds, int64_t interval_ns);

  // One verdict per vCPU into `verdicts` (as many as the sample has vCPUs). Band::kNone while a
  // vCPU's window is not full. `residency` belongs to the session and learns from every delta.
  void Classify(const Sample& sample, ResidencyEstimator& residency, std::span<Verdict> verdicts);

 private:
  struct VcpuHistory {
    std::vector<VerdictWindow> windows;  // one per core PMU
    Band band = Band::kNone;
  };

  Verdict ClassifyOne(const Sample& sample, size_t vcpu, ResidencyEstimator& residency);

  Layout layout_;
  std::array<VcpuDelta, kMaxGroups> deltas_;  // of one vCPU, for its core PMUs
  IpcBandsThresholds thresholds_;
  std::vector<VcpuHistory> vcpus_;
};

}  // namespace vcpulse::core

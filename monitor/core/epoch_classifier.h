#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/evidence.h"
#include "monitor/core/hysteresis.h"
#include "monitor/core/residency.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
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
  EpochClassifier(const Layout& layout, Classifier classifier, const Profile& profile,
                  int64_t interval_ns);

  // One verdict per vCPU into `verdicts` (as many as the sample has vCPUs). Band::kNone while a
  // vCPU's window is not full. `residency` belongs to the session and learns from every delta.
  void Classify(const Sample& sample, ResidencyEstimator& residency, std::span<Verdict> verdicts);

  Classifier classifier() const { return classifier_; }
  const EvidenceRules& evidence() const { return evidence_; }
  // What the latest window of a vCPU showed, for explanations.
  const Features& features(size_t vcpu) const { return vcpus_.at(vcpu).features; }

 private:
  // The last IPCs of one vCPU.
  class RecentIpcs {
   public:
    void Push(double ipc);
    void Clear() { size_ = 0; }
    // (highest - lowest) / mean; nothing while there are fewer than ten.
    std::optional<double> Spread() const;

   private:
    std::array<double, 10> ring_{};
    size_t next_ = 0;
    size_t size_ = 0;
  };

  struct VcpuHistory {
    std::vector<VerdictWindow> windows;  // one per core PMU
    Band band = Band::kNone;
    RecentIpcs ipcs;
    BandHysteresis hysteresis;
    Features features;
  };

  Verdict ClassifyOne(const Sample& sample, size_t vcpu, ResidencyEstimator& residency);
  Verdict Judge(VcpuHistory& history) const;

  Layout layout_;
  Classifier classifier_;
  PresenceThresholds presence_;
  IpcBandsThresholds ipc_bands_;
  EvidenceRules evidence_;
  std::array<VcpuDelta, kMaxGroups> deltas_;  // of one vCPU, for its core PMUs
  std::vector<VcpuHistory> vcpus_;
};

}  // namespace vcpulse::core

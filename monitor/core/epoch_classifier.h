#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/delta.h"
#include "monitor/core/evidence.h"
#include "monitor/core/presence.h"
#include "monitor/core/residency.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"

namespace vcpulse::core {

// Whether a judgement states what was measured (HALTED, starved, paused, nothing counted, ...)
// rather than what the numbers look like.
bool IsMeasured(const Judgement& judgement);

// Smooths the judgements of one vCPU: a change between SPINNING, PRODUCTIVE and UNKNOWN for want of
// a clear picture needs two of the last three windows. What is measured is shown at once, in either
// direction: to hold HALTED over a window in which the vCPU ran would be a wrong number.
class BandHysteresis {
 public:
  // Takes the judgement of the next window; gives what to show: it, or, while the change is not
  // believed yet, the last one of the band before.
  const Judgement& Push(const Judgement& raw);

 private:
  static constexpr size_t kWindows = 3;
  static constexpr int kNeeded = 2;

  std::array<Band, kWindows> recent_{};  // of judgements that are not measured, in a ring
  size_t next_ = 0;
  Judgement shown_;
};

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
  // vCPU's window is not full. A vCPU of which nothing newer was known is what it was. `residency`
  // belongs to the session and learns from every delta.
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
    int64_t read_end_ns = 0;  // of the last sample; 0: none
    Verdict verdict;          // of that
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

#include "monitor/core/epoch_classifier.h"

#include <optional>

namespace vcpulse::core {

EpochClassifier::EpochClassifier(size_t vcpus, const EventSlots& slots,
                                 const IpcBandsThresholds& thresholds, int64_t interval_ns)
    : slots_(slots),
      thresholds_(thresholds),
      vcpus_(vcpus, VcpuHistory{.window = VerdictWindow(interval_ns)}) {}

void EpochClassifier::Classify(const Sample& sample, ResidencyEstimator& residency,
                               std::span<Verdict> verdicts) {
  for (size_t i = 0; i < vcpus_.size(); ++i) {
    VcpuHistory& history = vcpus_[i];
    const std::optional<VcpuDelta> delta = history.window.Push(sample.vcpus[i]);
    verdicts[i] = {};
    if (delta) {
      residency.Observe(*delta, slots_);
      verdicts[i] = ClassifyIpcBands(*delta, slots_, residency.basis(), thresholds_, history.band);
    }
    history.band = verdicts[i].band;
  }
}

}  // namespace vcpulse::core

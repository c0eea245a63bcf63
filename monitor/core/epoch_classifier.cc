#include "monitor/core/epoch_classifier.h"

#include <algorithm>
#include <optional>

namespace vcpulse::core {

EpochClassifier::EpochClassifier(const Layout& layout, const IpcBandsThresholds& thresholds,
                                 int64_t interval_ns)
    : layout_(layout), thresholds_(thresholds) {
  layout_.core_pmus = std::clamp<size_t>(layout.core_pmus, 1, kMaxGroups);
  const std::vector<VerdictWindow> windows(layout_.core_pmus, VerdictWindow(interval_ns));
  vcpus_.assign(layout.vcpus, VcpuHistory{.windows = windows});
}

void EpochClassifier::Classify(const Sample& sample, ResidencyEstimator& residency,
                               std::span<Verdict> verdicts) {
  for (size_t i = 0; i < vcpus_.size(); ++i) {
    verdicts[i] = ClassifyOne(sample, i, residency);
    vcpus_[i].band = verdicts[i].band;
  }
}

Verdict EpochClassifier::ClassifyOne(const Sample& sample, size_t vcpu,
                                     ResidencyEstimator& residency) {
  VcpuHistory& history = vcpus_[vcpu];
  bool full = true;
  for (size_t pmu = 0; pmu < history.windows.size(); ++pmu) {
    const VcpuSample& seen = sample.vcpus[vcpu];
    const std::optional<VcpuDelta> delta = history.windows[pmu].Push(
        pmu == 0 ? seen : WithGroup(seen, sample.further[vcpu * sample.FurtherGroups() + pmu - 1]));
    full = full && delta;
    if (!delta) continue;
    deltas_[pmu] = *delta;
    residency.Observe(*delta, layout_.slots, pmu);
  }
  if (!full) return {};

  const std::span<const VcpuDelta> pmus = std::span(deltas_).first(history.windows.size());
  VcpuDelta whole = pmus.front();
  for (const VcpuDelta& other : pmus.subspan(1)) whole = AddPmu(whole, other);
  return ClassifyIpcBands(whole, layout_.slots, Residency(pmus, layout_.slots, residency.bases()),
                          thresholds_, history.band);
}

}  // namespace vcpulse::core

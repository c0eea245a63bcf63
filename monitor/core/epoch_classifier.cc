#include "monitor/core/epoch_classifier.h"

#include <algorithm>
#include <optional>

namespace vcpulse::core {
namespace {

// IPCs of spins are those of one type of core: they say nothing of sums over several.
EvidenceThresholds ThresholdsFor(const EpochClassifier::Layout& layout,
                                 const EvidenceThresholds& thresholds) {
  EvidenceThresholds of_sums = thresholds;
  if (layout.core_pmus > 1) of_sums.spin_ipcs = 0;
  return of_sums;
}

}  // namespace

EpochClassifier::EpochClassifier(const Layout& layout, Classifier classifier,
                                 const Profile& profile, int64_t interval_ns)
    : layout_(layout),
      classifier_(classifier),
      presence_(profile.presence),
      ipc_bands_(profile.ipc_bands),
      evidence_(ThresholdsFor(layout, profile.evidence)) {
  layout_.core_pmus = std::clamp<size_t>(layout.core_pmus, 1, kMaxGroups);
  const std::vector<VerdictWindow> windows(layout_.core_pmus, VerdictWindow(interval_ns));
  VcpuHistory history;
  history.windows = windows;
  vcpus_.assign(layout.vcpus, history);
}

void EpochClassifier::Classify(const Sample& sample, ResidencyEstimator& residency,
                               std::span<Verdict> verdicts) {
  for (size_t i = 0; i < vcpus_.size(); ++i) {
    VcpuHistory& history = vcpus_[i];
    if (history.read_end_ns != sample.vcpus[i].read_end_ns || history.read_end_ns == 0) {
      history.verdict = ClassifyOne(sample, i, residency);
      history.band = history.verdict.band;
      history.read_end_ns = sample.vcpus[i].read_end_ns;
    }
    verdicts[i] = history.verdict;
  }
}

Verdict EpochClassifier::ClassifyOne(const Sample& sample, size_t vcpu,
                                     ResidencyEstimator& residency) {
  VcpuHistory& history = vcpus_[vcpu];
  bool full = true;
  for (size_t pmu = 0; pmu < history.windows.size(); ++pmu) {
    const VcpuSample& seen = sample.vcpus[vcpu];
    VcpuDelta& delta = deltas_[pmu];
    const bool has_delta =
        pmu == 0
            ? history.windows[pmu].Push(seen, delta)
            : history.windows[pmu].Push(
                  WithGroup(seen, sample.further[vcpu * sample.FurtherGroups() + pmu - 1]), delta);
    full = full && has_delta;
    if (has_delta) residency.Observe(delta, layout_.slots, pmu);
  }
  if (!full) return {};

  const std::span<const VcpuDelta> pmus = std::span(deltas_).first(history.windows.size());
  Features& features = history.features;
  features.residency = Residency(pmus, layout_.slots, residency.bases());
  features.residency_at_most =
      ResidencyAtMost(pmus, layout_.slots, residency.bases(), features.residency);
  for (const VcpuDelta& other : pmus.subspan(1)) deltas_.front() = AddPmu(deltas_.front(), other);
  Measure(deltas_.front(), layout_.slots, evidence_.thresholds().pause_cycles_each, features);
  return Judge(history);
}

Verdict EpochClassifier::Judge(VcpuHistory& history) const {
  Features& features = history.features;
  const std::optional<Judgement> presence = JudgePresence(features, presence_, history.band);
  Judgement raw;
  if (presence) {
    history.ipcs.Clear();
    raw = *presence;
  } else if (classifier_ == Classifier::kIpcBands) {
    raw = JudgeIpcBands(features, ipc_bands_);
  } else {
    if (const auto ipc = features.Value(Feature::kIpc)) history.ipcs.Push(*ipc);
    if (const auto spread = history.ipcs.Spread()) features.Set(Feature::kIpcSpread, *spread);
    raw = evidence_.Judge(features);
  }
  const Judgement& shown =
      classifier_ == Classifier::kEvidence ? history.hysteresis.Push(raw) : raw;
  return {.band = shown.band,
          .rule = shown.rule,
          .starved = IsStarved(features, presence_),
          .confidence_pct = static_cast<uint8_t>(100 * shown.confidence + 0.5),
          .raw_band = raw.band,
          .raw_rule = raw.rule};
}

void EpochClassifier::RecentIpcs::Push(double ipc) {
  ring_[next_] = ipc;
  next_ = (next_ + 1) % ring_.size();
  if (size_ < ring_.size()) ++size_;
}

std::optional<double> EpochClassifier::RecentIpcs::Spread() const {
  if (size_ < ring_.size()) return std::nullopt;
  double sum = 0;
  double lowest = ring_.front();
  double highest = ring_.front();
  for (const double ipc : ring_) {
    sum += ipc;
    lowest = ipc < lowest ? ipc : lowest;
    highest = ipc > highest ? ipc : highest;
  }
  if (sum <= 0) return std::nullopt;
  return (highest - lowest) * static_cast<double>(ring_.size()) / sum;
}

bool IsMeasured(const Judgement& judgement) {
  switch (judgement.rule) {
    case Rule::kShort:
    case Rule::kMixed:
    case Rule::kUnclear:
    case Rule::kWeak:
      return false;
    default:
      return judgement.band != Band::kSpinning && judgement.band != Band::kProductive;
  }
}

const Judgement& BandHysteresis::Push(const Judgement& raw) {
  if (IsMeasured(raw)) {
    recent_.fill(Band::kNone);
    shown_ = raw;
    return shown_;
  }
  recent_[next_] = raw.band;
  next_ = (next_ + 1) % kWindows;
  const bool believed = IsMeasured(shown_) || raw.band == shown_.band ||
                        std::ranges::count(recent_, raw.band) >= kNeeded;
  if (believed) shown_ = raw;
  return shown_;
}

}  // namespace vcpulse::core

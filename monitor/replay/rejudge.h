#pragma once

// monitor/replay runs what was recorded once more. No file, no clock: records in, verdicts out.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/epoch_classifier.h"
#include "monitor/core/profile.h"
#include "monitor/core/residency.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::replay {

// What residency is divided by at the start of a session, one per core PMU.
std::vector<core::ResidencyBasis> BasesOf(const v1::Session& session);

// What the ticks of a set hold: of its vCPUs, the slots of the first group and how many groups add
// up.
core::EpochClassifier::Layout LayoutOf(const v1::VcpuSet& set);

// Judges the ticks of one stream anew: with the classifier and profile of the recording it gives
// the verdicts of the recording. One thread.
class Rejudge {
 public:
  Rejudge(core::ClassifierChoice choice, const core::Profile& profile);

  // The records of the stream, in order; sets and sessions that are known already are passed over.
  void Take(const v1::Session& session);
  void Take(const v1::VcpuSet& set);

  // No later tick is of this (vm, epoch): its memory is freed. Its set, if taken again, begins
  // anew.
  void EndEpoch(uint32_t vm, uint32_t epoch) { epochs_.erase({vm, epoch}); }

  // The classifier that judges the ticks of this set.
  core::Classifier ClassifierOf(const v1::VcpuSet& set) const;

  // The verdicts of a tick, one per vCPU, valid until the next call. Empty where no set that fits
  // it was taken. Where ticks before it were lost, it is judged from the sample before it.
  std::span<const core::Verdict> Judge(const timeline::TickEntry& tick);

  // Who judges a set's ticks, with what the latest window showed; null where it is not
  // known, or has no tick yet.
  const core::EpochClassifier* Find(uint32_t vm, uint32_t epoch) const;
  const core::ResidencyEstimator& residency() const { return residency_; }

 private:
  struct Epoch {
    core::EpochClassifier::Layout layout;
    size_t further_groups = 0;
    // Made with the first tick: a set may claim any number of vCPUs, a sample has them.
    std::optional<core::EpochClassifier> classifier{};
    uint64_t last_tick = 0;
  };

  core::ClassifierChoice choice_;
  core::Profile profile_;
  int64_t interval_ns_ = 0;
  bool has_session_ = false;
  core::ResidencyEstimator residency_{std::vector<core::ResidencyBasis>()};
  std::map<std::pair<uint32_t, uint32_t>, Epoch> epochs_;  // by (vm, epoch)
  std::vector<core::Verdict> verdicts_;
};

}  // namespace vcpulse::replay

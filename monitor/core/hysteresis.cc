#include "monitor/core/hysteresis.h"

#include <algorithm>

namespace vcpulse::core {

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

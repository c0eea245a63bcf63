#include "kvm/doctor/finding.h"

namespace vcpulse::kvm::doctor {

std::string_view ToString(Finding::State state) {
  switch (state) {
    case Finding::State::kOk:
      return "ok";
    case Finding::State::kObstacle:
      return "obstacle";
    case Finding::State::kNote:
      return "note";
    case Finding::State::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kComplete:
      return "complete";
    case Verdict::kDegraded:
      return "degraded";
    case Verdict::kFails:
      return "fails";
  }
  return "";
}

Verdict VerdictOf(std::span<const Finding> findings) {
  Verdict verdict = Verdict::kComplete;
  for (const Finding& finding : findings) {
    if (finding.state != Finding::State::kObstacle) continue;
    if (finding.prevents) return Verdict::kFails;
    verdict = Verdict::kDegraded;
  }
  return verdict;
}

}  // namespace vcpulse::kvm::doctor

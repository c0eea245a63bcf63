#include "kvm/doctor/finding.h"

#include <algorithm>

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
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kDegraded:
      return "degraded";
    case Verdict::kFails:
      return "fails";
  }
  return "";
}

bool LeavesAVmUnknown(const Finding& finding) {
  return finding.of_vm && finding.state == Finding::State::kUnknown;
}

Verdict VerdictOf(std::span<const Finding> findings) {
  const bool unknown = std::ranges::any_of(findings, LeavesAVmUnknown);
  Verdict verdict = unknown ? Verdict::kUnknown : Verdict::kComplete;
  for (const Finding& finding : findings) {
    if (finding.state != Finding::State::kObstacle) continue;
    if (finding.prevents) return Verdict::kFails;
    verdict = Verdict::kDegraded;
  }
  return verdict;
}

}  // namespace vcpulse::kvm::doctor

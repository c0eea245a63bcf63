#include "monitor/core/verdict.h"

namespace vcpulse::core {

std::string_view ToString(Band band) {
  switch (band) {
    case Band::kNone:
      return "-";
    case Band::kHalted:
      return "HALTED";
    case Band::kSpinning:
      return "SPINNING";
    case Band::kProductive:
      return "PRODUCTIVE";
    case Band::kUnknown:
      return "UNKNOWN";
  }
  return "-";
}

std::string_view ToString(Rule rule) {
  switch (rule) {
    case Rule::kNone:
      return "-";
    case Rule::kBlocked:
      return "blocked";
    case Rule::kResidency:
      return "residency";
    case Rule::kPolling:
      return "polling";
    case Rule::kIpcLow:
      return "ipc-low";
    case Rule::kIpcHigh:
      return "ipc-high";
    case Rule::kBetweenBands:
      return "between-bands";
    case Rule::kStarved:
      return "starved";
    case Rule::kPaused:
      return "paused";
    case Rule::kNotCounted:
      return "not-counted";
    case Rule::kNoInstructions:
      return "no-instructions";
    case Rule::kNoCounters:
      return "no-counters";
    case Rule::kStateUnknown:
      return "state-unknown";
    case Rule::kNoResidency:
      return "no-residency";
    case Rule::kPause:
      return "pause";
    case Rule::kMixed:
      return "mixed";
    case Rule::kSpinIpc:
      return "spin-ipc";
    case Rule::kTightLoop:
      return "tight-loop";
    case Rule::kPollLike:
      return "poll-like";
    case Rule::kSlowLoop:
      return "slow-loop";
    case Rule::kMemoryBound:
      return "memory-bound";
    case Rule::kBranchMisses:
      return "branch-misses";
    case Rule::kShort:
      return "short";
    case Rule::kUnclear:
      return "unclear";
    case Rule::kWeak:
      return "weak";
    case Rule::kSlowChain:
      return "slow-chain";
  }
  return "-";
}

}  // namespace vcpulse::core

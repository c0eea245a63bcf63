#pragma once

// What is said of a vCPU in one window: its band, and why.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vcpulse::core {

// Values are those of the timeline schema.
enum class Band : uint8_t { kNone = 0, kHalted = 1, kSpinning = 2, kProductive = 3, kUnknown = 4 };

// The rule that gave the band; for Band::kUnknown it is the reason. Values are those of the schema.
enum class Rule : uint8_t {
  kNone = 0,
  kBlocked = 1,
  kResidency = 2,
  kPolling = 3,
  kIpcLow = 4,
  kIpcHigh = 5,
  kBetweenBands = 6,
  kStarved = 7,
  kPaused = 8,
  kNotCounted = 9,
  kNoInstructions = 10,
  kNoCounters = 11,
  kStateUnknown = 12,
  kNoResidency = 13,
  // Of the evidence classifier; evidence.h has their conditions.
  kPause = 14,
  kMixed = 15,
  kSpinIpc = 16,
  kTightLoop = 17,
  kPollLike = 18,
  kSlowLoop = 19,
  kMemoryBound = 20,
  kBranchMisses = 21,
  kShort = 22,
  kUnclear = 23,
  kWeak = 24,
  kSlowChain = 25,
  kIoWait = 26,
  kSlowClock = 27,
  kBareLoop = 28,
  kL1dMisses = 29,
};

struct RuleInfo {
  Rule rule = Rule::kNone;
  std::string_view name;
  // Why it gives UNKNOWN, for people; empty: it gives another band.
  std::string_view unknown_as{};
};

// A rule each, in the order of their values.
inline constexpr std::array kRuleTable = std::to_array<RuleInfo>({
    {Rule::kNone, "-", "no reason recorded"},
    {Rule::kBlocked, "blocked"},
    {Rule::kResidency, "residency"},
    {Rule::kPolling, "polling"},
    {Rule::kIpcLow, "ipc-low"},
    {Rule::kIpcHigh, "ipc-high"},
    {Rule::kBetweenBands, "between-bands", "IPC between SPINNING and PRODUCTIVE"},
    {Rule::kStarved, "starved", "wanted to run and got no CPU"},
    {Rule::kPaused, "paused", "the VM was paused"},
    {Rule::kNotCounted, "not-counted", "its counter group was not on the PMU, or too briefly"},
    {Rule::kNoInstructions, "no-instructions", "ran guest code, but instructions are not counted"},
    {Rule::kNoCounters, "no-counters", "ran, but no hardware counter is read"},
    {Rule::kStateUnknown, "state-unknown", "off its CPU, and why could not be told"},
    {Rule::kNoResidency, "no-residency", "no frequency was known to compare its cycles with"},
    {Rule::kPause, "pause"},
    {Rule::kMixed, "mixed", "some PAUSE, too little for a spin: part spin, part work"},
    {Rule::kSpinIpc, "spin-ipc"},
    {Rule::kTightLoop, "tight-loop"},
    {Rule::kPollLike, "poll-like"},
    {Rule::kSlowLoop, "slow-loop"},
    {Rule::kMemoryBound, "memory-bound"},
    {Rule::kBranchMisses, "branch-misses"},
    {Rule::kShort, "short", "ran too briefly to be judged"},
    {Rule::kUnclear, "unclear", "no rule speaks for its counts"},
    {Rule::kWeak, "weak", "a rule speaks, but not surely enough"},
    {Rule::kSlowChain, "slow-chain"},
    {Rule::kIoWait, "io-wait", "waited for a disk, the network or memory"},
    {Rule::kSlowClock, "slow-clock",
     "ran little, or next to nothing on a slow core: the clock of its core is not known"},
    {Rule::kBareLoop, "bare-loop"},
    {Rule::kL1dMisses, "l1d-misses"},
});

// The rules of ipc-bands beside those of HALTED: by it they are a hint. `evidence` has an ipc-high
// too.
constexpr bool IsOfIpcAlone(Rule rule) {
  return rule == Rule::kIpcLow || rule == Rule::kIpcHigh || rule == Rule::kBetweenBands;
}

inline constexpr size_t kBands = 5;  // values of Band
inline constexpr size_t kRules = kRuleTable.size();
static_assert([] {
  for (size_t i = 0; i < kRules; ++i) {
    if (kRuleTable[i].rule != static_cast<Rule>(i)) return false;
  }
  return true;
}());

std::string_view ToString(Band band);  // "-", "HALTED", "SPINNING", "PRODUCTIVE", "UNKNOWN"
std::string_view ToString(Rule rule);  // "blocked", "ipc-low", "between-bands", ...

struct Verdict {
  Band band = Band::kNone;
  Rule rule =
      Rule::kNone;  // that gave `band`; while a change is not believed yet, in an earlier window
  bool starved = false;  // runnable but not running for more than starved_above of the window
  // Of band and rule, percent, rounded; 0 where none is given (most UNKNOWN).
  uint8_t confidence_pct = 0;
  // Of this window alone, before hysteresis.
  Band raw_band = Band::kNone;
  Rule raw_rule = Rule::kNone;

  bool operator==(const Verdict&) const = default;
};

}  // namespace vcpulse::core

#pragma once

// What one window shows of a vCPU, as the rules of the classifiers see it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"
#include "monitor/core/profile.h"

namespace vcpulse::core {

// What the evidence rules compare.
enum class Feature : uint8_t {
  kCycles = 0,
  kIpc = 1,           // instructions / cycles
  kIpcSpread = 2,     // (highest - lowest) / mean of the last ten IPCs
  kBranchShare = 3,   // branches / instructions
  kBranchMisses = 4,  // per kilo-cycle: guest timer ticks add misses per time, not per instruction
  kCacheMisses = 5,   // per kilo-cycle
  kPauseShare = 6,    // cycles in PAUSE / cycles
  kL1dMisses = 7,     // of the first-level data cache, per kilo-cycle
};
inline constexpr size_t kFeatures = 8;

std::string_view ToString(Feature feature);  // "IPC", "branch misses per kilo-cycle", ...

struct Features {
  int64_t interval_ns = 0;
  double enabled_share = 0;  // time enabled / interval: an upper bound of residency
  bool enabled = false;      // the thread was on a CPU at all
  // run_delay / interval, at most 1: delay is booked when the thread gets its CPU back and then
  // covers earlier windows too, which were judged by the thread's state. Absent: not measured.
  std::optional<double> waiting_share;
  double running_share = 0;  // time running / time enabled of the group; 0 where not enabled
  std::optional<double> residency;
  // Above `residency` where that is a lower bound, else the same.
  std::optional<double> residency_at_most;
  bool cycles_counted = false;  // cycles are in the event set
  // The group has not counted one cycle since its epoch began, and how long it was on the PMU.
  bool never_counted = false;
  int64_t ran_since_start_ns = 0;
  bool instructions_counted = false;
  ThreadState state = ThreadState::kNotRead;

  // Nothing where it was not measured.
  std::optional<double> Value(Feature feature) const {
    const auto i = static_cast<size_t>(feature);
    if ((measured & (1u << i)) == 0) return std::nullopt;
    return values[i];
  }
  void Set(Feature feature, double value) {
    const auto i = static_cast<size_t>(feature);
    values[i] = value;
    measured |= 1u << i;
  }

  std::array<double, kFeatures> values{};  // by Feature; see Value
  uint32_t measured = 0;                   // a bit per Feature
};

// instructions / cycles of one group, or nothing where either is absent or cycles is 0.
std::optional<double> Ipc(const VcpuDelta& delta, const EventSlots& slots);

// Features of one window, all but kIpcSpread and residency, into `features`. `pause_cycles_each` as
// in EvidenceThresholds. The interval is more than 0. Thread-safe, allocates nothing.
void Measure(const VcpuDelta& delta, const EventSlots& slots,
             std::optional<double> pause_cycles_each, Features& features);

}  // namespace vcpulse::core

#include "monitor/core/classify.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

// Above this share of waiting the vCPU is starved (overlay), and above the next it wanted to run so
// much that low residency says nothing about the guest.
constexpr double kStarvedAbove = 0.10;
constexpr double kMostlyWaiting = 0.50;

// Below this share of time on the PMU a count is too thin to extrapolate.
constexpr double kThinnestMultiplex = 0.05;

// The thread was on a CPU for this many times the guest's residency: the host polled for it.
constexpr double kPollingRatio = 5.0;

double Share(uint64_t part_ns, int64_t whole_ns) {
  return static_cast<double>(part_ns) / static_cast<double>(whole_ns);
}

// Run delay is booked when the thread gets its CPU back and then covers earlier intervals too: a
// share is clamped to the interval.
double WaitingShare(const VcpuDelta& delta) {
  return std::min(1.0, Share(delta.run_delay_ns.value_or(0), delta.interval_ns));
}

// Stopped by a signal or held by its VMM.
bool IsPaused(ThreadState state) {
  return state == ThreadState::kStopped || state == ThreadState::kPaused;
}

// The thread hardly ran: what its state says.
Verdict ClassifyOffCpu(const VcpuDelta& delta, double waiting) {
  const bool starved = waiting > kStarvedAbove;
  if (delta.state == ThreadState::kRunnable) {
    // It may wait since it was preempted, or have been woken just now: with something run and no
    // delay booked, neither can be proven.
    const bool waits = delta.time_enabled_ns == 0 || starved;
    return {Band::kUnknown, waits ? Rule::kStarved : Rule::kStateUnknown, waits};
  }
  if (IsPaused(delta.state)) return {Band::kUnknown, Rule::kPaused, starved};
  if (waiting > kMostlyWaiting) return {Band::kUnknown, Rule::kStarved, true};
  if (delta.time_enabled_ns > 0) return {Band::kHalted, Rule::kResidency, starved};
  if (delta.state == ThreadState::kBlocked) return {Band::kHalted, Rule::kBlocked, starved};
  return {Band::kUnknown, Rule::kStateUnknown, starved};
}

Verdict ClassifyIpc(const VcpuDelta& delta, const EventSlots& slots,
                    const IpcBandsThresholds& thresholds, bool starved) {
  const std::optional<double> ipc = Ipc(delta, slots);
  if (!ipc) return {Band::kUnknown, Rule::kNoInstructions, starved};
  if (*ipc < thresholds.spinning_below) return {Band::kSpinning, Rule::kIpcLow, starved};
  if (*ipc >= thresholds.productive_from) return {Band::kProductive, Rule::kIpcHigh, starved};
  return {Band::kUnknown, Rule::kBetweenBands, starved};
}

}  // namespace

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
  }
  return "-";
}

std::optional<double> Ipc(const VcpuDelta& delta, const EventSlots& slots) {
  if (!slots.cycles || !slots.instructions) return std::nullopt;
  const uint64_t cycles = delta.counts.at(*slots.cycles);
  if (cycles == 0) return std::nullopt;
  return static_cast<double>(delta.counts.at(*slots.instructions)) / static_cast<double>(cycles);
}

Verdict ClassifyIpcBands(const VcpuDelta& delta, const EventSlots& slots,
                         std::optional<double> residency, const IpcBandsThresholds& thresholds,
                         Band previous) {
  if (delta.interval_ns <= 0) return {};
  const double waiting = WaitingShare(delta);
  const double floor =
      previous == Band::kHalted ? thresholds.halted_leave : thresholds.halted_enter;
  const double enabled = Share(delta.time_enabled_ns, delta.interval_ns);
  if (delta.time_enabled_ns == 0 || enabled < floor) return ClassifyOffCpu(delta, waiting);

  const bool starved = waiting > kStarvedAbove;
  if (!slots.cycles) return {Band::kUnknown, Rule::kNoCounters, starved};
  const double q =
      static_cast<double>(delta.time_running_ns) / static_cast<double>(delta.time_enabled_ns);
  if (delta.time_running_ns == 0 || q < kThinnestMultiplex) {
    return {Band::kUnknown, Rule::kNotCounted, starved};
  }
  if (!residency) return {Band::kUnknown, Rule::kNoResidency, starved};
  if (*residency < floor) {
    if (waiting > kMostlyWaiting) return {Band::kUnknown, Rule::kStarved, true};
    if (delta.state == ThreadState::kRunnable) {
      return {Band::kUnknown, starved ? Rule::kStarved : Rule::kStateUnknown, starved};
    }
    if (IsPaused(delta.state)) return {Band::kUnknown, Rule::kPaused, starved};
    const bool polling = enabled > kPollingRatio * *residency;
    return {Band::kHalted, polling ? Rule::kPolling : Rule::kResidency, starved};
  }
  return ClassifyIpc(delta, slots, thresholds, starved);
}

}  // namespace vcpulse::core

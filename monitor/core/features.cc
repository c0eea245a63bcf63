#include "monitor/core/features.h"

#include <algorithm>

namespace vcpulse::core {
namespace {

double Ratio(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

double ShareOfInterval(uint64_t part_ns, int64_t interval_ns) {
  return static_cast<double>(part_ns) / static_cast<double>(interval_ns);
}

std::optional<uint64_t> CountAt(const VcpuDelta& delta, std::optional<size_t> slot) {
  if (!slot) return std::nullopt;
  return delta.counts[*slot];
}

void MeasureCounts(const VcpuDelta& delta, const EventSlots& slots,
                   std::optional<double> pause_cycles_each, Features& features) {
  const std::optional<uint64_t> cycles = CountAt(delta, slots.cycles);
  if (!cycles || delta.time_running_ns == 0) return;
  features.Value(Feature::kCycles) = static_cast<double>(*cycles);
  if (*cycles == 0) return;
  features.Value(Feature::kIpc) = Ipc(delta, slots);
  const auto per_kilo_cycle = [cycles](std::optional<uint64_t> count) -> std::optional<double> {
    if (!count) return std::nullopt;
    return 1000 * Ratio(*count, *cycles);
  };
  features.Value(Feature::kBranchMisses) = per_kilo_cycle(CountAt(delta, slots.branch_misses));
  features.Value(Feature::kCacheMisses) = per_kilo_cycle(CountAt(delta, slots.cache_misses));

  const std::optional<uint64_t> instructions = CountAt(delta, slots.instructions);
  const std::optional<uint64_t> branches = CountAt(delta, slots.branches);
  if (instructions && *instructions > 0 && branches) {
    features.Value(Feature::kBranchShare) = Ratio(*branches, *instructions);
  }
  const std::optional<uint64_t> pause = CountAt(delta, slots.pause);
  const std::optional<double> each = slots.pause_in_cycles ? 1.0 : pause_cycles_each;
  if (pause && each) {
    features.Value(Feature::kPauseShare) = std::min(1.0, *each * Ratio(*pause, *cycles));
  }
}

}  // namespace

std::string_view ToString(Feature feature) {
  switch (feature) {
    case Feature::kCycles:
      return "cycles";
    case Feature::kIpc:
      return "IPC";
    case Feature::kIpcSpread:
      return "spread of the last ten IPCs";
    case Feature::kBranchShare:
      return "branches per instruction";
    case Feature::kBranchMisses:
      return "branch misses per kilo-cycle";
    case Feature::kCacheMisses:
      return "cache misses per kilo-cycle";
    case Feature::kPauseShare:
      return "share of cycles in PAUSE";
  }
  return "-";
}

std::optional<double> Ipc(const VcpuDelta& delta, const EventSlots& slots) {
  if (!slots.cycles || !slots.instructions) return std::nullopt;
  const uint64_t cycles = delta.counts.at(*slots.cycles);
  if (cycles == 0) return std::nullopt;
  return Ratio(delta.counts.at(*slots.instructions), cycles);
}

Features Measure(const VcpuDelta& delta, const EventSlots& slots, std::optional<double> residency,
                 std::optional<double> pause_cycles_each) {
  Features features{.interval_ns = delta.interval_ns,
                    .enabled = delta.time_enabled_ns > 0,
                    .residency = residency,
                    .cycles_counted = slots.cycles.has_value(),
                    .instructions_counted = slots.instructions.has_value(),
                    .state = delta.state};
  if (delta.interval_ns <= 0) return features;
  features.enabled_share = ShareOfInterval(delta.time_enabled_ns, delta.interval_ns);
  features.waiting_share =
      std::min(1.0, ShareOfInterval(delta.run_delay_ns.value_or(0), delta.interval_ns));
  if (features.enabled) {
    features.running_share = std::min(1.0, Ratio(delta.time_running_ns, delta.time_enabled_ns));
  }
  MeasureCounts(delta, slots, pause_cycles_each, features);
  return features;
}

}  // namespace vcpulse::core

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

void MeasureCounts(const VcpuDelta& delta, const EventSlots& slots,
                   std::optional<double> pause_cycles_each, Features& features) {
  if (!slots.cycles || delta.time_running_ns == 0) return;
  const uint64_t cycles = delta.counts[*slots.cycles];
  features.Set(Feature::kCycles, static_cast<double>(cycles));
  if (cycles == 0) return;
  const auto per_cycle = [&](size_t slot) { return Ratio(delta.counts[slot], cycles); };
  if (slots.instructions) features.Set(Feature::kIpc, per_cycle(*slots.instructions));
  if (slots.branch_misses) {
    features.Set(Feature::kBranchMisses, 1000 * per_cycle(*slots.branch_misses));
  }
  if (slots.cache_misses) {
    features.Set(Feature::kCacheMisses, 1000 * per_cycle(*slots.cache_misses));
  }
  if (slots.l1d_misses) features.Set(Feature::kL1dMisses, 1000 * per_cycle(*slots.l1d_misses));
  if (slots.branches && slots.instructions && delta.counts[*slots.instructions] > 0) {
    features.Set(Feature::kBranchShare,
                 Ratio(delta.counts[*slots.branches], delta.counts[*slots.instructions]));
  }
  if (!slots.pause) return;
  const std::optional<double> each = slots.pause_in_cycles ? 1.0 : pause_cycles_each;
  if (delta.counts[*slots.pause] == 0) {
    features.Set(Feature::kPauseShare, 0);  // whatever one would take
  } else if (each) {
    features.Set(Feature::kPauseShare, std::min(1.0, *each * per_cycle(*slots.pause)));
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
    case Feature::kL1dMisses:
      return "L1D misses per kilo-cycle";
  }
  return "-";
}

std::optional<double> Ipc(const VcpuDelta& delta, const EventSlots& slots) {
  if (!slots.cycles || !slots.instructions) return std::nullopt;
  const uint64_t cycles = delta.counts.at(*slots.cycles);
  if (cycles == 0) return std::nullopt;
  return Ratio(delta.counts.at(*slots.instructions), cycles);
}

void Measure(const VcpuDelta& delta, const EventSlots& slots,
             std::optional<double> pause_cycles_each, Features& features) {
  features.interval_ns = delta.interval_ns;
  features.enabled_share = ShareOfInterval(delta.time_enabled_ns, delta.interval_ns);
  features.enabled = delta.time_enabled_ns > 0;
  features.waiting_share.reset();
  if (delta.run_delay_ns) {
    features.waiting_share = std::min(1.0, ShareOfInterval(*delta.run_delay_ns, delta.interval_ns));
  }
  features.running_share =
      features.enabled ? std::min(1.0, Ratio(delta.time_running_ns, delta.time_enabled_ns)) : 0;
  features.cycles_counted = slots.cycles.has_value();
  const std::optional<size_t> clock = slots.cycles ? slots.cycles : slots.ref_cycles;
  features.never_counted = clock && delta.NeverCounted(*clock);
  features.ran_since_start_ns = static_cast<int64_t>(delta.ran_since_start_ns);
  features.instructions_counted = slots.instructions.has_value();
  features.state = delta.state;
  features.measured = 0;
  MeasureCounts(delta, slots, pause_cycles_each, features);
}

}  // namespace vcpulse::core

#pragma once

// What the rows of jsonl and csv have in common.

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "monitor/reading/interval.h"

namespace vcpulse::exporting {

// Decimals of numbers that are no whole ones: finer than anything that is measured.
inline constexpr int kDecimals = 9;       // residency, IPC, shares
inline constexpr int kRateDecimals = 12;  // cache misses per instruction

// Cache misses per instruction of the interval. Nothing where they are not both counted in the
// first group, or no instruction was.
inline std::optional<double> CacheMissRate(const reading::Interval& interval) {
  const core::EventSlots& slots = interval.epoch.slots;
  if (!slots.cache_misses || !slots.instructions) return std::nullopt;
  const uint64_t instructions = interval.delta.counts[*slots.instructions];
  if (instructions == 0) return std::nullopt;
  return static_cast<double>(interval.delta.counts[*slots.cache_misses]) /
         static_cast<double>(instructions);
}

// Nothing where it is no number: a damaged file may have any frequency.
inline std::optional<double> Finite(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Whether waiting for a CPU is known: it was measured, or the verdict says so.
inline std::optional<bool> Starved(const reading::Interval& interval) {
  const core::Verdict& verdict = interval.verdict;
  if (verdict.band == core::Band::kNone) return std::nullopt;
  if (!interval.delta.run_delay_ns && !verdict.starved) return std::nullopt;
  return verdict.starved;
}

}  // namespace vcpulse::exporting

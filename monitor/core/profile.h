#pragma once

// The numbers that the classifiers compare with. Shares are 0..1. The defaults are those of the
// generic profile; monitor/profile reads others, with where each number comes from.

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace vcpulse::core {

// Whether a vCPU ran guest code at all, and was counted: both classifiers begin with it.
struct PresenceThresholds {
  double halted_enter = 0.02;  // residency below it: HALTED
  double halted_leave = 0.04;  // a HALTED vCPU stays so below it
  // Where residency is a lower bound: a vCPU that may have run for so much is not called HALTED.
  double halted_at_most = 0.06;
  // Share of its highest frequency below which no core runs guests.
  double slowest_clock = 0.14;
  double starved_above = 0.10;  // share of waiting for a CPU above which the vCPU is starved
  // Share of waiting above which low residency says nothing about the guest.
  double mostly_waiting_above = 0.50;
  // Share of the time enabled on the PMU below which a count is too thin to extrapolate.
  double counted_from = 0.05;
  // The thread was on a CPU for more than so many times the residency: the host polled for it.
  double polling_ratio_above = 5.0;

  bool operator==(const PresenceThresholds&) const = default;
};

// The ipc-bands classifier: instructions per cycle.
struct IpcBandsThresholds {
  double spinning_below = 0.75;
  double productive_from = 1.0;

  bool operator==(const IpcBandsThresholds&) const = default;
};

// Instructions per cycle of a spin on some CPU, both ends inclusive.
struct IpcRange {
  double from = 0;
  double to = 0;

  bool operator==(const IpcRange&) const = default;
};

// The evidence classifier; evidence.h has the rules.
struct EvidenceThresholds {
  static constexpr size_t kMostSpinIpcs = 4;

  double fewest_cycles = 1e6;           // fewer say nothing
  double full_confidence_cycles = 2e6;  // fewer lower the confidence

  // Share of cycles in PAUSE.
  double pause_spin_from = 0.30;
  double pause_mixed_from = 0.10;  // between the two: half a spin
  double no_pause_below = 0.01;    // a loop that executes none
  // Cycles that one PAUSE takes, for events that count instructions. Absent: such counts say
  // nothing.
  std::optional<double> pause_cycles_each;

  // A tight, predictable loop: misses per kilo-cycle, branches per instruction.
  double loop_branch_misses_below = 0.10;
  double loop_branch_share_from = 0.10;
  double loop_cache_misses_below = 0.10;
  double loop_l1d_misses_below = 0.50;
  // Of a tight loop where neither misses of caches nor of the L1D are counted.
  double bare_loop_branch_misses_below = 0.05;
  // IPC below which a loop that executes no PAUSE is no wait but a chain of slow instructions.
  double loop_ipc_from = 0.50;
  double poll_ipc_from = 1.0;             // a tight loop is poll-like from here on
  double steady_ipc_spread_below = 0.02;  // (highest - lowest) / mean of the last ten IPCs

  // Where branches are not counted.
  double slow_loop_branch_misses_below = 0.05;
  double slow_loop_ipc_below = 0.35;

  double memory_bound_ipc_below = 0.75;
  // Cache misses per kilo-cycle. Absent: what `cache-misses` counts on this CPU is no evidence.
  std::optional<double> memory_bound_cache_misses_from = 0.5;

  double productive_ipc_from = 1.0;
  double productive_branch_misses_from = 0.20;
  double productive_l1d_misses_from = 1.0;
  double productive_l1d_ipc_from = 0.20;  // of them; contended waits miss too, at a lower IPC

  double weak_below = 0.20;  // confidence below which a verdict is not given

  // IPCs at which spins of this CPU were measured; none known: an empty list.
  std::array<IpcRange, kMostSpinIpcs> spin_ipc{};
  size_t spin_ipcs = 0;

  std::span<const IpcRange> SpinIpcs() const { return std::span(spin_ipc).first(spin_ipcs); }

  bool operator==(const EvidenceThresholds&) const = default;
};

struct Profile {
  PresenceThresholds presence;
  IpcBandsThresholds ipc_bands;
  EvidenceThresholds evidence;

  bool operator==(const Profile&) const = default;
};

}  // namespace vcpulse::core

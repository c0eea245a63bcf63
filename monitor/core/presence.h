#pragma once

#include <cstdint>
#include <optional>

#include "monitor/core/features.h"
#include "monitor/core/profile.h"
#include "monitor/core/verdict.h"

namespace vcpulse::core {

// What a classifier says of one window alone.
struct Judgement {
  Band band = Band::kNone;
  Rule rule = Rule::kNone;
  double confidence = 0;  // 0..1; 0 where none is given

  bool operator==(const Judgement&) const = default;
};

// The rules that come first in both classifiers: whether the vCPU ran guest code, and whether that
// was counted. Nothing where both are so, and what it ran is to be judged. `previous` is the
// vCPU's band before (hysteresis of HALTED). In order, with E = enabled_share, an upper bound of
// residency R, S = waiting_share, q = running_share:
//   E = 0            by thread state: blocked HALTED, runnable UNKNOWN(starved), stopped or held by
//                    its VMM UNKNOWN(paused), waiting for I/O UNKNOWN(io-wait), else
//                    UNKNOWN(state-unknown); but UNKNOWN(starved) before HALTED where S >
//                    mostly_waiting_above
//   E below floor    HALTED; but UNKNOWN(starved) where S > mostly_waiting_above,
//                    UNKNOWN(state-unknown) where the thread is runnable right now (it may be
//                    waiting for a CPU, and delay is booked only when it gets one), UNKNOWN(paused)
//                    where it is stopped or held, UNKNOWN(io-wait) where it waits for I/O
//   no counters      UNKNOWN(no-counters): neither cycles nor ref-cycles
//   q below counted_from  UNKNOWN(not-counted)
//   never counted    UNKNOWN(not-counted): not one cycle since the epoch began, in
//   kEnoughToCount_ns R unknown        UNKNOWN(no-residency) R below floor    HALTED (polling where
//   E is well above R); but the same as above where S, or the
//                    state if it was read, says so, and UNKNOWN(slow-clock) where R is a lower
//                    bound and the vCPU may have run for halted_at_most
// The floor is halted_enter, or halted_leave where `previous` is HALTED. HALTED is less sure where
// neither S nor the state is known, or the vCPU may have run for more than the floor.
// Thread-safe, allocates nothing.
std::optional<Judgement> JudgePresence(const Features& features,
                                       const PresenceThresholds& thresholds, Band previous);

// A group that was on the PMU for so long and has not counted one cycle of the guest counts none:
// guests whose host may not count them, nested and virtual PMUs.
inline constexpr int64_t kEnoughToCount_ns = 20'000'000;

// What the residency may have been at most: a core is not slower than slowest_clock of its highest
// frequency, and no vCPU runs while its thread does not.
double MostResidency(const Features& features, const PresenceThresholds& thresholds);

// Whether the vCPU wanted a CPU and got none for a good part of the window: S above starved_above,
// or a thread that waits for a CPU with nothing run.
bool IsStarved(const Features& features, const PresenceThresholds& thresholds);

}  // namespace vcpulse::core

#pragma once

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
//                    its VMM UNKNOWN(paused), else UNKNOWN(state-unknown); but UNKNOWN(starved)
//                    before HALTED where S > mostly_waiting_above
//   E below floor    HALTED; but UNKNOWN(starved) where S > mostly_waiting_above,
//                    UNKNOWN(state-unknown) where the thread is runnable right now (it may be
//                    waiting for a CPU, and delay is booked only when it gets one), UNKNOWN(paused)
//                    where it is stopped or held
//   no counters      UNKNOWN(no-counters): neither cycles nor ref-cycles
//   q below counted_from  UNKNOWN(not-counted)
//   R unknown        UNKNOWN(no-residency)
//   R below floor    HALTED (polling where E is well above R); but the same three as above where S,
//                    or the state if it was read, says so
// The floor is halted_enter, or halted_leave where `previous` is HALTED. HALTED is less sure where
// neither S nor the state is known.
// Thread-safe, allocates nothing.
std::optional<Judgement> JudgePresence(const Features& features,
                                       const PresenceThresholds& thresholds, Band previous);

// Whether the vCPU wanted a CPU and got none for a good part of the window: S above starved_above,
// or a thread that waits for a CPU with nothing run.
bool IsStarved(const Features& features, const PresenceThresholds& thresholds);

}  // namespace vcpulse::core

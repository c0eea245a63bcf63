#pragma once

// Bands: what a vCPU did in one window, from its delta alone. The same function serves live
// recording, replay and re-classification.

#include <cstdint>
#include <optional>
#include <string_view>

#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"
#include "monitor/core/residency.h"

namespace vcpulse::core {

// Values are those of the timeline schema.
enum class Band : uint8_t { kNone = 0, kHalted = 1, kSpinning = 2, kProductive = 3, kUnknown = 4 };

// The rule that gave the band; for kUnknown it is the reason. Values are those of the schema.
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
};

std::string_view ToString(Band band);  // "-", "HALTED", "SPINNING", "PRODUCTIVE", "UNKNOWN"
std::string_view ToString(Rule rule);  // "blocked", "ipc-low", "between-bands", ...

struct Verdict {
  Band band = Band::kNone;
  Rule rule = Rule::kNone;
  bool starved = false;  // runnable but not running for more than starved_above of the window

  bool operator==(const Verdict&) const = default;
};

// Thresholds of the ipc-bands classifier (shares and IPC, dimensionless).
struct IpcBandsThresholds {
  double halted_enter = 0.02;    // residency below it: HALTED
  double halted_leave = 0.04;    // a HALTED vCPU stays so up to it
  double spinning_below = 0.75;  // IPC
  double productive_from = 1.0;  // IPC
};

// instructions / cycles of one group, or nothing where either is absent or cycles is 0.
std::optional<double> Ipc(const VcpuDelta& delta, const EventSlots& slots);

// The ipc-bands classifier: residency first (of the same window, nothing where unknown), then IPC.
// `previous` is the vCPU's band before it
// (hysteresis of HALTED). Rules, in order, with E = time enabled / interval, an upper bound of
// residency R, S = run_delay / interval, q = time running / time enabled:
//   E = 0            by thread state: blocked HALTED, runnable UNKNOWN(starved), stopped or held by
//                    its VMM UNKNOWN(paused), else UNKNOWN(state-unknown)
//   E below floor    HALTED; but UNKNOWN(starved) where S > 0.5, UNKNOWN(state-unknown) where the
//                    thread is runnable right now (it may be waiting for a CPU, and delay is booked
//                    only when it gets one), UNKNOWN(paused) where it is stopped or held
//   no counters      UNKNOWN(no-counters)
//   q < 0.05         UNKNOWN(not-counted)
//   R below floor    HALTED (polling where E is well above R); but the same three as above where S,
//                    or the state if it was read, says so
//   R unknown        UNKNOWN(no-residency)
//   no instructions  UNKNOWN(no-instructions)
//   IPC              SPINNING, UNKNOWN(between-bands) or PRODUCTIVE
// The floor is halted_enter, or halted_leave where `previous` is HALTED. Starved is an overlay:
// S > 0.1, or a thread that waits for a CPU with nothing run. Thread-safe, allocates nothing.
Verdict ClassifyIpcBands(const VcpuDelta& delta, const EventSlots& slots,
                         std::optional<double> residency, const IpcBandsThresholds& thresholds,
                         Band previous);

}  // namespace vcpulse::core

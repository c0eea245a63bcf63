#pragma once

// The two classifiers. The same functions serve live recording, replay and re-classification.

#include <optional>
#include <string_view>

#include "monitor/core/event_slots.h"
#include "monitor/core/features.h"
#include "monitor/core/presence.h"
#include "monitor/core/profile.h"

namespace vcpulse::core {

enum class Classifier { kIpcBands, kEvidence };
// What people ask for: kAuto is by what is counted.
enum class ClassifierChoice { kAuto, kIpcBands, kEvidence };

std::string_view ToString(Classifier classifier);    // "ipc-bands", "evidence"
std::string_view ToString(ClassifierChoice choice);  // "auto", ...
std::optional<ClassifierChoice> ParseClassifierChoice(std::string_view name);

// kAuto: evidence where cycles, instructions, branches and branch-misses are counted.
Classifier Choose(ClassifierChoice choice, const EventSlots& slots);

// The ipc-bands rule, for a window that JudgePresence leaves open: SPINNING, UNKNOWN(between-bands)
// or PRODUCTIVE by instructions per cycle, UNKNOWN(no-instructions) without them. A hint, no proof:
// it gives no confidence. Thread-safe, allocates nothing.
Judgement JudgeIpcBands(const Features& features, const IpcBandsThresholds& thresholds);

}  // namespace vcpulse::core

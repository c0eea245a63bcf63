#pragma once

// Values of a quantity in words, the same in every message and table. Pure.

#include <string>

#include "monitor/check/outcome.h"

namespace vcpulse::check {

// "12.3 %", "0.90", "200.0 ms": a digit behind the point (of IPC two), or as many as tell it
// from `limit`.
std::string ValueText(const Quantity& quantity, double value, double limit);

// "0.0 % to 1.2 %", one value where both are shown alike, "0.50 or more" where there is no end.
std::string BoundsText(const Quantity& quantity, const Bounds& bounds, double limit);

// A limit as people write it: "5 %", "0.9", "200ms".
std::string LimitText(const Quantity& quantity, double limit);

// "100.0 % from 12.3 s to 13.4 s", after the recording's start; to the millisecond where it is
// shorter than a second.
std::string WorstText(const Quantity& quantity, const WorstSpan& worst, double limit);

}  // namespace vcpulse::check

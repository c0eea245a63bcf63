#pragma once

// What was found of one subject, in words.

#include <cstdint>
#include <optional>
#include <string>

#include "monitor/check/judging.h"
#include "monitor/check/outcome.h"
#include "monitor/check/result.h"
#include "monitor/check/subjects.h"

namespace vcpulse::check {

// The finding for `subject`; `start_ns` is the recording's start, `degraded_reason` why no counter
// was read (may be empty).
Finding MakeFinding(const Question& question, const Subject& subject, const Watched& watched,
                    int64_t start_ns, const std::string& degraded_reason);

// Where nothing fits: INCONCLUSIVE.
Finding MissingSubject(const std::string& whom, const std::string& reason);

// A limit as people write it: "5 %", "0.9", "200ms".
std::string LimitText(const Quantity& quantity, double limit);

}  // namespace vcpulse::check

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/check/expression.h"
#include "monitor/check/result.h"

namespace vcpulse::check {

struct CheckOptions {
  std::optional<std::string> phase;  // nothing: the whole recording
  int64_t skip_first_ns = 0;         // of each span of the phase, or of the recording
  uint64_t min_ticks = 10;           // fewer measured ticks of a vCPU: INCONCLUSIVE
  double min_measured = 0.1;         // a smaller share of the judged time measured: INCONCLUSIVE
};

// Reads the timeline (twice: markers come before what they mark is known; `-` is kept in memory)
// and judges each expectation. A phase that never came, and a selector that nothing fits, are
// INCONCLUSIVE. Errors: of timeline::ReadTimeline; InvalidArgument where the file holds two
// streams.
absl::StatusOr<Result> CheckTimeline(const std::string& path,
                                     std::span<const Expectation> expectations,
                                     const CheckOptions& options);

}  // namespace vcpulse::check

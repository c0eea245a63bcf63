#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/compare/comparison.h"

namespace vcpulse::compare {

struct CompareOptions {
  std::optional<std::string> phase;  // nothing: each phase that both have, else the whole
  std::optional<std::string> vm;     // name, UUID or PID; nothing: each
  std::vector<Limit> limits;
};

// Compares two timelines, each read twice ("-" for one of them is standard input, kept in memory).
// The same files give the same numbers. Errors, naming the file: of timeline::ReadTimeline;
// InvalidArgument where a file holds two recordings or nothing, or both are standard input;
// NotFound where the phase or the VM is not in both.
absl::StatusOr<Comparison> CompareTimelines(const std::string& path_a, const std::string& path_b,
                                            const CompareOptions& options);

}  // namespace vcpulse::compare

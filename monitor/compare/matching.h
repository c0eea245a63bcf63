#pragma once

// Which VM of B is which of A. Pure.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/compare/comparison.h"
#include "monitor/compare/recording.h"

namespace vcpulse::compare {

struct Matched {
  std::vector<VmGroup> a;  // in the same order
  std::vector<VmGroup> b;
  std::vector<std::string>
      notes;  // whom nothing matches, and what was matched by order, for people
};

// By name; where none is called so, by UUID; else the only VM of each. `vm` (a name, UUID or PID)
// leaves the others out. Errors: NotFound where nothing matches, saying who was there.
absl::StatusOr<Matched> MatchVms(const Recording& a, const Recording& b,
                                 const std::optional<std::string>& vm);

// What else than the guests may make two recordings differ. Pure.

Described Describe(const Recording& recording, const Measured& measured);

// One line each: settings and hosts that differ so that numbers may differ for it.
std::vector<std::string> DifferingSettings(const Recording& a, const Measured& of_a,
                                           const Recording& b, const Measured& of_b);

}  // namespace vcpulse::compare

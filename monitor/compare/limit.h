#pragma once

// What `compare --fail-if` asks.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "monitor/check/expression.h"

namespace vcpulse::compare {

// The difference B - A is too much where it is on that side of the limit.
struct Limit {
  std::string text;                  // as it was given, without spaces around it
  check::Selector selector;          // of VMs and vCPUs, each on its own
  std::optional<std::string> phase;  // nothing: each phase
  metric::Metric metric = metric::Metric::kHalted;
  bool above = true;  // too much is above the limit; else below
  double value = 0;   // in the unit of the quantity; where relative, a share of A's value
  bool relative = false;

  bool operator==(const Limit&) const = default;
};

// Parses one limit:
//   [vm=NAME|"NAME"|*] [vcpu=*|N|N-M[,...]] [phase=NAME|"NAME"|*] : QUANTITY <|<=|>=|> CHANGE
// What stands before the colon may be left out, with it. QUANTITY is a metric that can be asked for
// (metric.h). CHANGE has a sign: +5pt are percentage points (of a share), -10% is relative to A's
// value, -0.2 is of a number, such as ipc. As nothing hangs on a single point, <= and
// >= mean what < and > do. Pure. Errors: InvalidArgument, one line that begins with "column N: "
// (from 1, in bytes).
absl::StatusOr<Limit> ParseLimit(std::string_view text);

}  // namespace vcpulse::compare

#pragma once

// monitor/check judges a timeline against expectations. Expressions are parsed here into plain
// data, markers become phases, ticks become tallies, and tallies become outcomes by interval
// arithmetic: what is UNKNOWN or missing may have been anything. All of it is pure but for
// CheckTimeline, which reads the file. docs/harness.md tells users what each word means.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::check {

// What is observed of a vCPU (kGaps: of a VM).
enum class Metric : uint8_t {
  kHalted,  // share of the time in this band, 0..1
  kSpinning,
  kProductive,
  kUnknown,
  kStarved,    // share of the time in ticks with the overlay, 0..1
  kResidency,  // share of the time in guest code, 0..1
  kIpc,        // percentile of the IPC of its ticks that are not HALTED, weighted by their time
  kGaps,       // share of the time in which samples are missing, 0..1
};

std::string_view ToString(Metric metric);  // "halted", "ipc", ...

// Shares are 0..1, IPC is instructions per cycle, longest() is ns.
struct Quantity {
  Metric metric = Metric::kHalted;
  bool longest = false;   // the longest uninterrupted run, of kHalted to kStarved
  double percentile = 0;  // of kIpc, 1..99

  bool operator==(const Quantity&) const = default;
};

// "productive", "ipc.p50", "longest(spinning)".
std::string ToString(const Quantity& quantity);

enum class Comparison : uint8_t { kBelow, kAtMost, kAtLeast, kAbove };

std::string_view ToString(Comparison comparison);  // "<", "<=", ">=", ">"

// Indexes of vCPUs, both ends inclusive.
struct IndexRange {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const IndexRange&) const = default;
};

// Whom an expectation is about: each of them on its own, never their sum.
struct Selector {
  std::optional<std::string> vm;  // name, UUID or PID; nothing: each VM
  std::vector<IndexRange> vcpus;  // empty: each vCPU

  bool operator==(const Selector&) const = default;
};

struct Expectation {
  std::string text;  // as it was given, without spaces around it
  Selector selector;
  Quantity quantity;
  Comparison comparison = Comparison::kAtMost;
  double limit = 0;  // in the unit of the quantity

  bool operator==(const Expectation&) const = default;
};

// Parses one expectation:
//   [vm=NAME|"NAME"|*] [vcpu=*|N|N-M[,...]] : QUANTITY <|<=|>=|> LIMIT
// The selector and its colon may be left out (each VM, each vCPU); gaps take no vcpu=. LIMIT of a
// share is a percentage ("80%"), of IPC a number, of longest() a duration ("200ms", "1.5s"). Spaces
// are free between words. Pure. Errors: InvalidArgument, one line that begins with "column N: "
// (from 1, in bytes) and says what was found there and what is allowed.
absl::StatusOr<Expectation> ParseExpectation(std::string_view text);

// Parses the text of an expect file: one expectation per line; empty lines and what follows a '#'
// at the start of a word are passed over. Pure. Errors: InvalidArgument, one line: "line N, column
// M: ..." as above, or that there is no expectation at all.
absl::StatusOr<std::vector<Expectation>> ExpectationsFromText(std::string_view text);

}  // namespace vcpulse::check

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/check/expression.h"
#include "monitor/check/outcome.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::check {

struct CheckOptions {
  // Of expectations without a phase of their own; nothing: the whole recording.
  std::optional<std::string> phase;
  std::optional<std::string> baseline{};  // timeline that expectations may be relative to
  int64_t skip_first_ns = 0;              // of each span of the phase, or of the recording
  uint64_t min_ticks = 10;                // fewer measured ticks of a vCPU: INCONCLUSIVE
  double min_measured = 0.1;         // a smaller share of the judged time measured: INCONCLUSIVE
  bool trust_ipc_bands = false;      // every quantity that can be is by_ipc_bands
  hotspots::GuestKernels symbols{};  // by which hot() names functions
  bool allow_skip = false;           // a PASS beside a SKIP is a PASS, else a SKIP
};

// Reads the timeline (twice: markers come before what they mark is known; what is no regular file
// is kept in memory) and judges each expectation. A phase that never came, and a selector that
// nothing fits, are INCONCLUSIVE; so is a PASS on a phase where records are lost, or that the end
// of a recording cut off. Of a baseline the same quantity is measured, in the same phase, for each
// vCPU for the one with its index of the VM with its name (or of the only VM of both); where that
// is a range so is the limit, and where it is not known the outcome is INCONCLUSIVE. Errors: of
// timeline::ReadTimeline; InvalidArgument where a file holds two streams or nothing that can be
// read, and where an expectation uses a baseline and there is none.
absl::StatusOr<Result> CheckTimeline(const std::string& path,
                                     std::span<const Expectation> expectations,
                                     const CheckOptions& options);

// One quantity of one vCPU (gaps: of one VM), as a check would see it.
struct Measurement {
  std::string subject;             // "VM web vCPU 2"
  std::optional<Bounds> observed;  // nothing where nothing tells, as the IPC of a HALTED vCPU
  uint64_t ticks = 0;              // measured in the time that was judged
  int64_t judged_ns = 0;           // wall time that was judged
  int64_t unknown_ns = 0;          // thereof not known to count or not

  bool operator==(const Measurement&) const = default;
};

// Measures without judging: of the options, phase and skip_first_ns hold. Bounds of an IPC are
// within 0.6 % of those that a check judges by. Errors: as CheckTimeline; NotFound where the phase
// never came or nothing fits the selector; InvalidArgument where it fits several, and for a
// quantity that is none; FailedPrecondition where the quantity needs counters and none was read,
// or where the vCPU could not be opened.
absl::StatusOr<Measurement> Measure(const std::string& path, const Selector& selector,
                                    const Quantity& quantity, const CheckOptions& options);

}  // namespace vcpulse::check

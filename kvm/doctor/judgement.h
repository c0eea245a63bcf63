#pragma once

// What a claim of the proof comes to: what was counted against what had to be. No I/O.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvm/doctor/checks.h"
#include "kvm/doctor/guest_counts.h"

namespace vcpulse::kvm::doctor {

// What interrupts and exits may add to a count, as some PMUs count an instruction once more that
// they stopped: this many, or 10 ppm of what had to be if that is more.
uint64_t Slack(uint64_t expected);

// Adds up what was seen, vCPU by vCPU and event by event.
class Judgement {
 public:
  Judgement() = default;
  // It could not be tried.
  explicit Judgement(absl::Status status) : status_(std::move(status)) {}

  // Whether these counts were on all the time that their thread was on a CPU; else nothing is
  // concluded from them.
  void TakeTimes(const Counts& counts);

  // A count that must be this one. `whose` begins its text.
  void Compare(const std::string& whose, std::string_view event, uint64_t expected,
               uint64_t counted);

  // Counts that must be nothing. `what` was counted: it begins the text.
  void CompareNothing(const std::string& what, const Counts& counts);

  // A clock that must come at a rate that a CPU can have, and at no more than `tsc_hz`, where that
  // is known; not all of a thread's time is the guest's, so it may be half of it.
  void CompareRate(std::string_view event, double hz, std::optional<double> tsc_hz);

  bool whole() const { return whole_; }
  bool ran() const { return ran_; }  // the counters were on for a while, each time

  // kUnknown where it could not be tried, its counts are not whole, or nothing was compared; else
  // kOk, or kFail with `fix`. `what` begins the answer.
  Finding ToFinding(std::string_view id, const std::string& tried, const std::string& what,
                    const std::string& fix) const;

 private:
  absl::Status status_;
  bool holds_ = true;
  bool whole_ = true;
  bool ran_ = true;
  std::vector<std::string> texts_;
};

}  // namespace vcpulse::kvm::doctor

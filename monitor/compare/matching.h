#pragma once

// Which VM of one recording is which of another. Pure.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/compare/comparison.h"
#include "monitor/compare/recording.h"

namespace vcpulse::compare {

struct Matched {
  std::vector<std::vector<VmGroup>> groups;  // of each recording; VMs in the same order
  // Which VMs have no match, and which were matched as the only ones, for people.
  std::vector<std::string> notes;
};

// The VMs that each of the recordings (at least two) has: matched with those of the first one by
// name; where none is called so, by UUID; else the only VM of each. `vm` (a name, UUID, PID or
// number) leaves the others out. Errors: NotFound where nothing matches, saying who was there.
absl::StatusOr<Matched> MatchVms(std::span<const Recording> recordings,
                                 const std::optional<std::string>& vm);

// A VM that was there in a phase and is not compared in it.
struct LeftOut {
  VmGroup vm;
  std::optional<std::string> phase;
  std::string why;  // for people
};

// Those of `vm` that no VM in each recording matches, and those that ran and were not recorded.
// Each once in a phase.
std::vector<LeftOut> FindLeftOut(std::span<const Recording> recordings, const Matched& matched,
                                 const std::optional<std::string>& vm,
                                 std::span<const std::optional<std::string>> phases);

// What else than the guests may make recordings differ. Pure.

Described Describe(const Recording& recording, const Measured& measured);

// One line each: settings and hosts that differ so that numbers may differ for it.
std::vector<std::string> DifferingSettings(std::span<const Recording> recordings,
                                           std::span<const Measured> measured);

}  // namespace vcpulse::compare

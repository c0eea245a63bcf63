#pragma once

// Whether the counters of this host count guests as vcpulse takes them to, shown by guests whose
// every instruction is known (kvm/microguest). docs/accuracy.md has the method.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/checks.h"
#include "kvm/events/event.h"

namespace vcpulse::kvm::doctor {

struct ProofOptions {
  std::string root = "/";      // as in Discovery; the guests run on this machine
  std::optional<Event> pause;  // what this CPU counts PAUSE by
};

// A finding for each claim; those of programs have their names:
//   kOk       what was counted is what had to be; `answered` has both, and the error where there is
//             one
//   kNote     where this host has no counters: the guest ran as it had to
//   kFail     it did not, or was counted wrong
//   kUnknown  it could not be tried, and why
// Takes about 2 s; 30 s at most where guests are slow. Opens counters on threads of its own. Runs
// guests in this process; SIGRTMIN is its own meanwhile.
std::vector<Finding> Prove(PerfEvents& perf, const ProofOptions& options);

enum class Proven {
  kYes,
  kNo,       // a claim failed
  kNotTold,  // none failed, and some could not be tried
};

std::string_view ToString(Proven proven);  // "yes", "no", "not-told"

Proven IsProven(std::span<const Finding> findings);

}  // namespace vcpulse::kvm::doctor

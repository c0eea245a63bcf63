#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vcpulse::kvm::doctor {

// The answer to one question about this host.
struct Finding {
  enum class State {
    kOk,
    kObstacle,  // a recording would not be complete
    kNote,      // good to know, changes nothing about completeness
    kUnknown,   // cannot be told, or could not be tried; `answered` says why
  };

  std::string id;  // stable, kebab-case, such as "paranoid"; one per VM for those about VMs
  State state = State::kOk;
  std::string tried;
  std::string answered;
  std::string remedy;     // empty where nothing has to be done
  bool prevents = false;  // an obstacle with which nothing is recorded, not even degraded
  bool of_vm = false;     // about a VM that runs now

  bool operator==(const Finding&) const = default;
};

std::string_view ToString(Finding::State state);  // "ok", "obstacle", "note", "unknown"

// What a recording on this host would be.
enum class Verdict { kComplete, kUnknown, kDegraded, kFails };

std::string_view ToString(Verdict verdict);  // "complete", "unknown", "degraded", "fails"

// Whether a VM that runs now may be recorded with less than it has.
bool LeavesAVmUnknown(const Finding& finding);

// kFails where an obstacle prevents, kDegraded with any other; without obstacles kUnknown where
// something about a VM that runs now is unknown, else kComplete.
Verdict VerdictOf(std::span<const Finding> findings);

}  // namespace vcpulse::kvm::doctor

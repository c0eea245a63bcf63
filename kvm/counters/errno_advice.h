#pragma once

// What to tell a person whose perf_event_open failed: one line with the cause and the remedy.
// docs/errors.md has every line word by word, and tests hold the two together.

#include <sys/types.h>

#include <cerrno>
#include <optional>
#include <string>

#include "kvm/own_rights.h"

namespace vcpulse::kvm {

// Whether descriptors or memory ran out: what is closed may be what this call lacked.
constexpr bool MeansShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM;
}

// What is known at the failure.
struct OpenFailure {
  int error = 0;      // errno of perf_event_open
  std::string event;  // perf's name
  pid_t tid = 0;
  std::optional<int> paranoid;  // /proc/sys/kernel/perf_event_paranoid
  std::string owner;            // of the target process, as OwnerOfProcess says it
};

struct OpenAdvice {
  std::string cause;
  std::string remedy;  // empty where there is none
};

// For a process that has these rights. Both are one line without a final full stop.
OpenAdvice ExplainOpenFailure(const OpenFailure& failure, const OwnRights& own);

// "CAUSE: REMEDY" for this process: reads its rights in /proc/self.
std::string AdviseOnOpenFailure(const OpenFailure& failure);

}  // namespace vcpulse::kvm

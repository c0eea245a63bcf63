#pragma once

// What to tell a person whose perf_event_open failed: one line with the cause and the remedy.

#include <sys/types.h>

#include <optional>
#include <string>

namespace vcpulse::kvm {

// What is known at the failure.
struct OpenFailure {
  int error = 0;      // errno of perf_event_open
  std::string event;  // perf's name
  pid_t tid = 0;
  std::optional<int> paranoid;  // /proc/sys/kernel/perf_event_paranoid
  std::string owner;            // of the target process, as OwnerOfProcess says it
};

// The cause and what to do, in one line without a final full stop.
std::string AdviseOnOpenFailure(const OpenFailure& failure);

}  // namespace vcpulse::kvm

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/microguest/machine.h"
#include "monitor/calibrate/calibration.h"
#include "monitor/profile/profile.h"

namespace vcpulse::calibrate {

struct RunOptions {
  absl::Duration each = absl::Seconds(2);  // of a scene
  absl::Duration interval = absl::Milliseconds(50);
  std::string output{};  // also keeps the timeline there; empty: does not
  profile::Profile profile{};
  std::vector<int> cpus{};  // the guests are kept to them; empty: to none
  std::string tool_version{};
  // A line for people.
  std::function<void(const std::string& line)> say;
  // Before each scene; on a thread of its own.
  std::function<void(size_t scene, size_t scenes, const std::string& what)> begins;
};

// InvalidArgument where the guests may not run on one of them.
absl::Status CheckCpus(const std::vector<int>& cpus);

// The machine for the scenes, on a host whose counters can be read. Errors, which mean that nothing
// can be calibrated here: of Machine::Create; FailedPrecondition where there are no hardware
// counters.
absl::StatusOr<std::unique_ptr<kvm::microguest::Machine>> MakeMachine();

// Plays all scenes in this process, recorded as `vcpulse record` would, a marker each; takes as
// long as they do. What the measured profile is, or why there is none, is in the result. Errors:
// InvalidArgument where the guests cannot be kept to `cpus`; Unavailable where guests fail, or none
// can run; Cancelled where SIGINT, SIGTERM or SIGHUP ended it; of recording.
absl::StatusOr<Calibration> Run(const RunOptions& options, kvm::microguest::Machine& machine);

}  // namespace vcpulse::calibrate

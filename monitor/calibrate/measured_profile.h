#pragma once

// A profile of what was measured on this host, to judge its recordings by.

#include <string>

#include "absl/status/statusor.h"
#include "kvm/host.h"
#include "monitor/calibrate/calibration.h"
#include "monitor/profile/profile.h"

namespace vcpulse::calibrate {

// `base` with the instructions per cycle of this host's spins in PAUSE and the cycles that a PAUSE
// takes, for this model of CPU alone. `where` goes into their origins: "this host on 2026-01-31,
// Linux 6.1.0". Errors: FailedPrecondition where nothing of it can be told: IPC means nothing here,
// no spin was slow enough to be known by its IPC, or a number is out of a profile's limits.
absl::StatusOr<profile::Profile> MeasuredProfile(const Calibration& calibration,
                                                 const profile::Profile& base,
                                                 const kvm::CpuIdentity& cpu,
                                                 const std::string& where);

// Installs the profile that was measured (profile::Install). Returns its path. Errors:
// FailedPrecondition where there is none, or evidence is no more often right with it; of Install.
absl::StatusOr<std::string> InstallIfBetter(const Calibration& calibration,
                                            const std::string& root);

}  // namespace vcpulse::calibrate

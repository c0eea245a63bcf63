#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kvm/counters/group_opener.h"
#include "monitor/core/classify.h"
#include "monitor/profile/profile.h"
#include "tools/vcpulse/target.h"

namespace vcpulse::tools {

// What `vcpulse record` was asked for.
struct RecordOptions {
  TargetOptions target;
  absl::Duration wait = absl::ZeroDuration();  // for the target to appear
  absl::Duration interval = absl::Milliseconds(100);
  absl::Duration duration = absl::InfiniteDuration();
  std::string output = "vcpulse.vpt";
  bool delimited = false;  // length-delimited TimelineRecords instead of chunks
  bool realtime = false;
  kvm::OpenOptions open;
  core::ClassifierChoice classifier = core::ClassifierChoice::kAuto;
  profile::Profile profile;
  std::vector<std::string> command;

  // InvalidArgument with one line that names the flag, or OK.
  absl::Status Validate() const;
};

// Records until something ends it. Returns the exit code; what went wrong was printed.
int RunRecord(const RecordOptions& options);

}  // namespace vcpulse::tools

#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// Hands each vCPU set that a tick of the file needs to `sink`, as often as chunks repeat it. Reads
// all chunks, but decodes none of their ticks; damaged ones are passed over. Errors: those of
// opening and reading a file.
absl::Status FindSets(const std::string& path, absl::FunctionRef<void(const v1::VcpuSet&)> sink);

}  // namespace vcpulse::exporting

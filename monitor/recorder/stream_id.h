#pragma once

#include "absl/status/statusor.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::recorder {

// The id of a new stream.
absl::StatusOr<timeline::StreamId> RandomStreamId();

}  // namespace vcpulse::recorder

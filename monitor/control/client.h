#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "monitor/control/request.h"
#include "monitor/control/response.h"

namespace vcpulse::control {

struct Answer {
  std::string line;  // as it came, without its end
  Response response;
};

// Whether the failure of Ask() came before anything was sent, so that it can be asked again without
// being done twice.
bool NobodyWasAsked(const absl::Status& status);

// Sends one request to the recording that listens at `path` and waits for its answer, for `timeout`
// in all. Blocks the calling thread; any thread. An answer of {"ok":false} is no error of Ask's.
// Errors, in one line that names the path: InvalidArgument for a path that cannot be; NotFound
// where there is no socket; Unavailable where nobody listens there, or it ended before it answered;
// PermissionDenied; DeadlineExceeded; DataLoss where the answer makes no sense.
absl::StatusOr<Answer> Ask(const std::string& path, const Request& request,
                           absl::Duration timeout = absl::Seconds(5));

}  // namespace vcpulse::control

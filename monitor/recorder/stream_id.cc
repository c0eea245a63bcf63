#include "monitor/recorder/stream_id.h"

#include <sys/random.h>

#include "absl/status/status.h"

namespace vcpulse::recorder {

absl::StatusOr<timeline::StreamId> RandomStreamId() {
  timeline::StreamId id{};
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    return absl::InternalError("getrandom(2) gave no stream id");
  }
  return id;
}

}  // namespace vcpulse::recorder

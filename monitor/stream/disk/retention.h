#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::stream {

struct Retention {
  std::optional<int64_t> max_age_ns;  // since a file's last change
  std::optional<uint64_t> max_bytes;  // of all timelines below the directory
};

struct Removed {
  uint64_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> errors;  // for people, one line each
};

// Removes files of timelines (20 digits and .vpt, in folders that end in a stream id) below
// `directory` (DIR/AGENT/STREAM/FILE) that are too old, then the oldest of whichever agent has the
// most until the rest fits; folders that are empty then go too. The newest file of a stream for
// which `is_live` says yes stays whatever it is: the collector appends to it. Nothing else is
// touched. Errors: where the directory cannot be read.
absl::StatusOr<Removed> ApplyRetention(
    Files& files, const std::string& directory, const Retention& retention, int64_t realtime_ns,
    const std::function<bool(const std::string& stream_directory)>& is_live);

}  // namespace vcpulse::stream

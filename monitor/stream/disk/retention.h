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

// Says whether the wall clock may be trusted to remove files by their age. One thread.
class WallClock {
 public:
  // False from a jump on (more than 1 h against CLOCK_BOOTTIME since the last look) until the clock
  // has jumped back, or has been as it is for 24 h.
  bool IsPlausible(int64_t realtime_ns, int64_t boottime_ns);

 private:
  // Of CLOCK_REALTIME against CLOCK_BOOTTIME.
  std::optional<int64_t> offset_ns_;     // that is trusted; none before the first look
  std::optional<int64_t> jumped_to_ns_;  // that is not
  int64_t jumped_at_ns_ = 0;             // CLOCK_BOOTTIME
};

// Removes files of timelines (20 digits and .vpt, in folders that end in a stream id) below
// `directory` (DIR/AGENT/STREAM/FILE) that are too old, then the oldest of whichever agent has the
// most until the rest fits; folders that are empty then go too. The newest file of a stream for
// which `is_live` says yes stays whatever it is: the collector appends to it. Nothing else is
// touched. Errors: where the directory cannot be read.
absl::StatusOr<Removed> ApplyRetention(
    Files& files, const std::string& directory, const Retention& retention, int64_t realtime_ns,
    const std::function<bool(const std::string& stream_directory)>& is_live);

// Applies a retention again and again, as long as the wall clock is plausible. One thread.
class Retainer {
 public:
  // `say` takes one line for people.
  Retainer(Files& files, std::string directory, const Retention& retention, int64_t realtime_ns,
           std::function<void(const std::string&)> say);

  // True where files were removed.
  bool Apply(int64_t realtime_ns,
             const std::function<bool(const std::string& stream_directory)>& is_live);

 private:
  Files& files_;
  const std::string directory_;
  const Retention retention_;
  const std::function<void(const std::string&)> say_;
  WallClock wall_clock_;
  bool said_clock_ = false;
};

}  // namespace vcpulse::stream

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/rollup/store/stream_rollup.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// A window of rollups.
struct Window {
  int64_t length_ns = 0;
  std::string name;  // "10s", "1m": of "60s" too

  bool operator==(const Window&) const = default;
};

// "10s,1m". Errors: InvalidArgument in one line that begins with the flag, for a length that is not
// one of a duration's forms, not from 1ms to 24h, or given twice.
absl::StatusOr<std::vector<Window>> ParseWindows(const std::string& flag, const std::string& text);

// One of them.
absl::StatusOr<Window> ParseWindow(const std::string& flag, const std::string& text);

// What a collector keeps beside timelines, as written.
struct LevelOptions {
  std::optional<std::string> rollup;
  std::optional<std::string> parquet;
  std::optional<std::string> keep;
};

// Adds --rollup, --parquet and --keep.
void AddLevelOptions(CLI::App& command, LevelOptions& options);

struct Levels {
  std::vector<rollup::StoredLevel> rollups;
  std::optional<std::string> parquet;  // directory
  std::optional<int64_t> raw_age_ns;   // of the timelines
  std::optional<int64_t> parquet_age_ns;
};

// Errors: InvalidArgument in one line that begins with the flag.
absl::StatusOr<Levels> ParseLevels(const LevelOptions& options);

}  // namespace vcpulse::tools

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::reading {

// A timeline that can be read twice: of a file it keeps the path, of what is no regular file (a
// pipe, standard input) all bytes.
class RepeatableInput {
 public:
  // `path` "-" is standard input, read to its end here. Errors: of opening and reading what is no
  // regular file; those of a file come from Read.
  static absl::StatusOr<RepeatableInput> Open(const std::string& path);

  // As timeline::ReadTimeline.
  absl::StatusOr<timeline::ReadReport> Read(const timeline::EntrySink& sink) const;
  // For messages: "standard input" for "-".
  std::string Name() const { return path_ == "-" ? "standard input" : path_; }

 private:
  explicit RepeatableInput(std::string path) : path_(std::move(path)) {}

  std::string path_;
  bool in_memory_ = false;
  std::vector<uint8_t> bytes_;  // of what can be read once only
};

}  // namespace vcpulse::reading

#pragma once

// What the readers of timelines read, whatever was named.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/byte_source.h"

namespace vcpulse::timeline {

struct JoinedParts;

// A recording: a file, a folder of its parts, "-" for standard input; or several files and folders
// that each hold some of its records, joined by sequence number: what is there twice is read once,
// and what none of them holds is a loss. Copies share what was found. Any thread.
class Input {
 public:
  // Whoever names one path means this.
  Input(std::string path) : paths_{std::move(path)} {}  // NOLINT(google-explicit-constructor)
  Input(const char* path) : paths_{path} {}             // NOLINT(google-explicit-constructor)

  // One path, as above, or several. Of several, each file is read once here for the order of the
  // chunks and once to check them; what is added to them later is not read. Memory: some bytes for
  // each place where the reading goes from one part to another. Errors: those of MergeTimelines;
  // InvalidArgument for standard input beside others.
  static absl::StatusOr<Input> Join(std::vector<std::string> paths);

  bool IsStandardInput() const { return paths_.size() == 1 && paths_.front() == "-"; }
  bool IsJoined() const { return joined_ != nullptr; }
  // As given; of several the first one.
  const std::string& path() const { return paths_.front(); }
  const std::vector<std::string>& paths() const { return paths_; }
  // For messages: "standard input", the path, or "a, b and 3 more".
  std::string Name() const;

  // Its bytes from the beginning on. Errors: those of OpenByteSource.
  absl::StatusOr<std::unique_ptr<ByteSource>> Open() const;

 private:
  std::vector<std::string> paths_;
  std::shared_ptr<const JoinedParts> joined_;  // null: one path
};

// Files that hold parts of one recording, as one, as Join has them. Errors: those of
// MergeTimelines.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenJoinedSource(const std::vector<std::string>& files);

}  // namespace vcpulse::timeline

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::reading {

// Part of a recording, ns after its start; or all spans of a phase, each from a marker of that name
// to the next marker. What lies at the end is no longer part of it.
struct Part {
  std::optional<int64_t> from_ns{};
  std::optional<int64_t> to_ns{};
  std::optional<std::string> phase{};
};

struct PartRead {
  timeline::ReadReport read{};
  // The instant of the recording's first record that has one, CLOCK_MONOTONIC; looked for only
  // where a part was asked for.
  std::optional<int64_t> start_mono_ns{};
  // Of a phase: how often it came, and how long its spans are together.
  uint64_t phase_spans = 0;
  int64_t phase_length_ns = 0;
};

// The middle of the time that a tick tells of: since the one before it. CLOCK_MONOTONIC.
int64_t PlaceOf(const timeline::TickEntry& tick);

// Hands that part of a timeline to `sink`, with the records that explain it. A file is sought in:
// chunks outside the part are not read. Standard input is read to its end. A tick
// belongs to the part that has the middle of the time since the tick before it. A phase takes two
// readings. Errors: those of timeline::ReadTimeline; InvalidArgument for a phase that
// never came, and for one of standard input, which can be read once; what the sink returned, as it
// is.
absl::StatusOr<PartRead> ReadPart(const timeline::Input& input, const Part& part,
                                  const timeline::EntrySink& sink);

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

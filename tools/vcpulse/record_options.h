#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/live/loop.h"
#include "monitor/live/options.h"
#include "tools/vcpulse/classifier_options.h"
#include "tools/vcpulse/metrics_endpoint.h"
#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {

// Options of a recording as text, until they are parsed.
struct RecordText {
  std::string wait = "0s";
  std::optional<std::string> rewait;
  std::string interval = "100ms";
  std::string duration;
  std::string set = "full";
  std::optional<std::string> events;
  std::optional<std::string> hotspots;
  std::string hotspots_source = "auto";
  std::string reader = "auto";
  std::string format = "vpt";
  std::optional<std::string> output;
  UplinkOptions uplink;
  std::vector<std::string> labels;
  ClassifierOptions classifier;
};

// What `vcpulse record` was asked for.
struct RecordOptions : live::Options {
  std::vector<std::string> command;
  bool require_guest = false;  // an error where none was recorded
  MetricsOptions metrics;
  std::optional<stream::RecordUplink::Options> uplink;  // nothing: to a file alone

  // InvalidArgument with one line that names the flag, or OK.
  absl::Status Validate() const;
};

// Adds all options of a recording, for `record` and `top`, but for those of `record` alone.
// `default_output` is what help says of no --output.
void AddRecordingOptions(CLI::App& command, RecordOptions& options, RecordText& text,
                         const std::string& default_output);
// What they say. Errors: InvalidArgument in one line that names the flag.
absl::StatusOr<RecordOptions> ParseRecording(RecordOptions options, const RecordText& text);

// Who shows a recording while it runs, in place of the line of `record`.
struct Display {
  live::View view;
  std::function<void(std::span<const uint8_t> chunk)> chunk;  // on the control thread
  // The recording begins; `loop` is there until `ended` returns.
  std::function<void(live::Loop& loop)> begin;
  // It has ended: no more chunks come. Returns when the display is gone.
  std::function<void(const absl::Status& status, bool by_signal)> ended;
};

// Records until something ends it. Returns the exit code; what went wrong was printed. `display`
// may be null.
int RunRecord(const RecordOptions& options, const Display* display = nullptr);

}  // namespace vcpulse::tools

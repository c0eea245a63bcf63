#pragma once

#include <array>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/counters/perf_events.h"
#include "monitor/live/options.h"
#include "monitor/recorder/output_file.h"
#include "monitor/recorder/recording.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::live {

// The parts of one recording put together: output, writer, recording. Not yet ticking.
class Session {
 public:
  // Looks at the host, checks the output and writes the Session record (into memory). Errors: an
  // output that cannot be written, counters that are required and not to be had.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Options& options);

  recorder::Recording& recording() { return *recording_; }
  const recorder::OutputFile& output() const { return *output_; }
  // Why no hardware counter can be read on this host; empty where they can.
  const std::string& no_counters_reason() const { return no_counters_reason_; }

  // Writes everything so far to the output.
  absl::Status Flush();
  // Adds the Summary record.
  void Summarize(uint64_t ticks, const std::string& end_reason);

 private:
  Session() = default;

  kvm::KernelPerfEvents perf_;
  std::string no_counters_reason_;
  std::unique_ptr<recorder::OutputFile> output_;
  std::unique_ptr<timeline::RecordWriter> writer_;
  std::unique_ptr<recorder::Recording> recording_;
};

}  // namespace vcpulse::live

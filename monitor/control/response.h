#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vcpulse::control {

enum class RecordingState { kRecording, kPaused, kStopping };

std::string_view ToString(RecordingState state);

// What `status` answers.
struct RecordingStatus {
  struct Vm {
    std::string name;
    int pid = 0;
    uint64_t vcpus = 0;

    bool operator==(const Vm&) const = default;
  };

  RecordingState state = RecordingState::kRecording;
  int64_t elapsed_ns = 0;     // since the recording began, pauses included
  uint64_t ticks = 0;         // that the sampling thread woke for
  uint64_t vcpu_samples = 0;  // one per vCPU and tick
  uint64_t gaps = 0;
  std::string output;                // empty: none was said
  std::string reader;                // of the counters: "bpf" or "read"; empty: not said
  std::optional<std::string> phase;  // the name of the latest marker
  uint64_t markers = 0;
  std::vector<Vm> vms;
  uint64_t vms_left_out = 0;  // of an answer that would be too long

  bool operator==(const RecordingStatus&) const = default;
};

// An answer is one line: {"ok":true,...} or {"ok":false,"error":"..."}.
struct Response {
  absl::Status error;                     // of {"ok":false}: FailedPrecondition with its text
  std::optional<int64_t> mono_ns;         // of mark: CLOCK_MONOTONIC at the receipt
  std::optional<RecordingStatus> status;  // of status

  bool operator==(const Response&) const = default;
};

// No answer is longer: VMs of a status that do not fit are counted in vms_left_out.
inline constexpr size_t kLongestAnswer_bytes = 1 << 20;

// The line with its end. What is not UTF-8 in a text becomes '?' (JSON knows nothing else).
std::string ResponseLine(const Response& response);

// Reads one line, without its end. Errors: InvalidArgument where it is no answer, one line.
absl::StatusOr<Response> ParseResponse(std::string_view line);

}  // namespace vcpulse::control

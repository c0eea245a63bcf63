#pragma once

// monitor/control is how a running recording is steered and asked: one request per line over a unix
// stream socket, answered with one JSON object per line (response.h). request, response,
// marker_name and line_splitter are pure; server and client are the two ends of the socket,
// phase_input reads markers from standard input. What a request does is not known here: the server
// hands it to its owner. Asio stays in the .cc files.

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vcpulse::control {

enum class Verb {
  kMark,    // mark NAME
  kPause,   // no VM is sampled until resume
  kResume,  //
  kStop,    // ends the recording in order
  kStatus,
};

struct Request {
  Verb verb = Verb::kStatus;
  std::string name;  // of kMark: as CheckMarkerName gives it

  bool operator==(const Request&) const = default;
};

std::string_view ToString(Verb verb);

// One line without its end. Spaces around it are cut. Errors: InvalidArgument, "column N: ...", one
// line of printable ASCII.
absl::StatusOr<Request> ParseRequest(std::string_view line);

// The line, with its end, that ParseRequest reads as `request`.
std::string RequestLine(const Request& request);

}  // namespace vcpulse::control

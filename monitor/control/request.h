#pragma once

// monitor/control is how a running recording is steered and asked: one request per line over a unix
// stream socket, answered with one JSON object per line (response.h). request, response,
// marker_name and line_splitter are pure; server and client are the two ends of the socket,
// phase_input reads markers from standard input. What a request does is not known here: the server
// hands it to its owner. Asio stays in the .cc files.

#include <cstddef>
#include <optional>
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

inline constexpr size_t kLongestLine_bytes = 4096;

// Cuts what arrives into lines. A line ends with LF or CR LF, neither of which is part of it. It
// does no I/O: the owner feeds it what was received, and takes lines until there is none; so it
// holds no more than one line and one piece. One thread.
class LineSplitter {
 public:
  struct Line {
    std::string text;
    // The line has more than `longest` bytes: `text` is empty, and what is left of it is skipped.
    // Said once, before its end has come.
    bool too_long = false;
  };

  explicit LineSplitter(size_t longest = kLongestLine_bytes) : longest_(longest) {}

  void Receive(std::string_view bytes);
  // The next line, nothing where none is whole yet.
  std::optional<Line> Next();
  // Nothing more will come: the last line where it has no end, nothing where there is none. Called
  // when Next has none.
  std::optional<Line> Rest();

 private:
  // Takes `size` bytes as a line, and `ending` more.
  Line Take(size_t size, size_t ending);

  size_t longest_;
  std::string pending_;
  bool skipping_ = false;  // to the end of a line that is too long
};

inline constexpr size_t kLongestMarkerName_bytes = 256;

// The name of a marker, without the spaces around it: 1 to kLongestMarkerName_bytes of UTF-8
// without control characters. Errors: InvalidArgument, "column N: ...", one line; columns are
// characters, and `text` begins in `first_column`.
absl::StatusOr<std::string> CheckMarkerName(std::string_view text, size_t first_column = 1);

}  // namespace vcpulse::control

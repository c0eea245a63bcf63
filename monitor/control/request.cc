#include "monitor/control/request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/control/marker_name.h"

namespace vcpulse::control {
namespace {

constexpr std::array kVerbs = {
    std::pair<Verb, std::string_view>{Verb::kMark, "mark"},
    std::pair<Verb, std::string_view>{Verb::kPause, "pause"},
    std::pair<Verb, std::string_view>{Verb::kResume, "resume"},
    std::pair<Verb, std::string_view>{Verb::kStop, "stop"},
    std::pair<Verb, std::string_view>{Verb::kStatus, "status"},
};

// Of a word that is no request: as much as says what it was.
constexpr size_t kShown = 32;

absl::Status AtPosition(size_t position, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", position + 1, ": ", what));
}

}  // namespace

std::string_view ToString(Verb verb) {
  return std::ranges::find(kVerbs, verb, &std::pair<Verb, std::string_view>::first)->second;
}

absl::StatusOr<Request> ParseRequest(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return AtPosition(0, "no request; known are mark NAME, pause, resume, stop and status");
  }
  const size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  const auto known = std::ranges::find(kVerbs, word, &std::pair<Verb, std::string_view>::second);
  if (known == kVerbs.end()) {
    return AtPosition(begin,
                      absl::StrCat("'", absl::CHexEscape(ToAbsl(word.substr(0, kShown))),
                                   word.size() > kShown ? "..." : "",
                                   "' is no request; known are mark NAME, pause, resume, stop and "
                                   "status"));
  }
  Request request{.verb = known->first};
  if (request.verb == Verb::kMark) {
    absl::StatusOr<std::string> name = CheckMarkerName(line.substr(end), end + 1);
    if (!name.ok()) return name.status();
    request.name = *std::move(name);
    return request;
  }
  const size_t more = line.find_first_not_of(' ', end);
  if (more != std::string_view::npos) {
    return AtPosition(more, absl::StrCat("nothing follows ", ToAbsl(word)));
  }
  return request;
}

std::string RequestLine(const Request& request) {
  std::string line(ToString(request.verb));
  if (request.verb == Verb::kMark) line += " " + request.name;
  return line + "\n";
}

}  // namespace vcpulse::control

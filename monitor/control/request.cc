#include "monitor/control/request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"

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

absl::Status At(size_t column, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("column ", column, ": ", what));
}

// C0, DEL and C1, which come in UTF-8 as C2 80 to C2 9F.
bool IsControl(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<uint8_t>(sequence[1]) < 0xA0;
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
    return AtPosition(
        begin, absl::StrCat("'", absl::CHexEscape(ToAbsl(word.substr(0, kShown))),
                            word.size() > kShown ? "..." : "",
                            "' is not a request; known are mark NAME, pause, resume, stop and "
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

void LineSplitter::Receive(std::string_view bytes) { pending_ += bytes; }

LineSplitter::Line LineSplitter::Take(size_t size, size_t ending) {
  Line line{.text = pending_.substr(0, size)};
  pending_.erase(0, size + ending);
  if (line.text.ends_with('\r')) line.text.pop_back();
  if (line.text.size() > longest_) line = {.too_long = true};
  return line;
}

std::optional<LineSplitter::Line> LineSplitter::Next() {
  size_t end = pending_.find('\n');
  if (skipping_) {
    if (end == std::string::npos) {
      pending_.clear();
      return std::nullopt;
    }
    skipping_ = false;
    pending_.erase(0, end + 1);
    end = pending_.find('\n');
  }
  if (end != std::string::npos) return Take(end, 1);
  // One more for the CR of an end that has come half.
  if (pending_.size() <= longest_ + 1) return std::nullopt;
  pending_.clear();
  skipping_ = true;
  return Line{.too_long = true};
}

std::optional<LineSplitter::Line> LineSplitter::Rest() {
  if (skipping_ || pending_.empty()) return std::nullopt;
  return Take(pending_.size(), 0);
}

absl::StatusOr<std::string> CheckMarkerName(std::string_view text, size_t first_column) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return At(first_column + text.size(), "a marker needs a name");
  }
  const std::string_view name = text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
  size_t column = first_column + begin;
  for (size_t i = 0; i < name.size(); ++column) {
    const size_t length = Utf8SequenceLength(name.substr(i));
    if (length == 0) {
      return At(column, absl::StrFormat("byte 0x%02x is not UTF-8", static_cast<uint8_t>(name[i])));
    }
    if (IsControl(name.substr(i, length))) {
      return At(column, "the name of a marker has no control characters");
    }
    if (i + length > kLongestMarkerName_bytes) {
      return At(column, absl::StrCat("the name of a marker has at most ", kLongestMarkerName_bytes,
                                     " bytes"));
    }
    i += length;
  }
  return std::string(name);
}

}  // namespace vcpulse::control

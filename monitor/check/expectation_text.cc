// Expect files: one expectation per line.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "monitor/check/expression.h"

namespace vcpulse::check {
namespace {

// `line` up to a '#' that begins it or follows a space, outside of quotes.
std::string_view WithoutComment(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    const bool begins_word = i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t';
    if (line[i] == '#' && begins_word && !quoted) return line.substr(0, i);
  }
  return line;
}

}  // namespace

absl::StatusOr<std::vector<Expectation>> ExpectationsFromText(std::string_view text) {
  std::vector<Expectation> expectations;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutComment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r\v\f") == std::string_view::npos) continue;
    auto expectation = ParseExpectation(line);
    if (!expectation.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ", ", expectation.status().message()));
    }
    expectations.push_back(*std::move(expectation));
  }
  if (expectations.empty()) return absl::InvalidArgumentError("there is no expectation in it");
  return expectations;
}

}  // namespace vcpulse::check

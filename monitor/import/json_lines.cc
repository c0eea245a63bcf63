#include "monitor/import/json_lines.h"

#include <algorithm>
#include <cmath>

#include "monitor/import/table.h"

namespace vcpulse::importing {
namespace {

namespace json = boost::json;

json::parse_options Options() {
  json::parse_options options;
  options.max_depth = 4;
  options.allow_invalid_utf8 = true;  // names of threads are any bytes
  return options;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// As JSON where C wrote numbers by a locale, or none: `1,5` to `1.5` (commas of JSON are followed
// by a blank there), nan and inf to null. Texts are left alone.
std::string Repaired(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNone = {"-nan", "nan", "-inf", "inf"};
  std::string repaired;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\' && i + 1 < text.size()) {
      repaired.push_back(c);
      repaired.push_back(text[++i]);
      continue;
    }
    if (c == '"') in_text = !in_text;
    const auto* const none = std::ranges::find_if(
        kNone, [&](std::string_view word) { return text.substr(i).starts_with(word); });
    const bool decimal =
        c == ',' && i > 0 && i + 1 < text.size() && IsDigit(text[i - 1]) && IsDigit(text[i + 1]);
    if (!in_text && none != kNone.end()) {
      repaired.append("null");
      i += none->size() - 1;
    } else {
      repaired.push_back(!in_text && decimal ? '.' : c);
    }
  }
  return repaired;
}

}  // namespace

JsonLines::JsonLines(TextSource& source) : source_(source), parser_({}, Options()) {}

void JsonLines::Rewind() {
  source_.Rewind();
  rest_ = {};
  begun_ = false;
  line_ = 0;
}

bool JsonLines::Parse(std::string_view text) {
  value_.reset();
  parser_.reset();
  memory_.emplace(buffer_.data(), buffer_.size());
  parser_.reset(json::storage_ptr(&*memory_));
  json::error_code error;
  const size_t taken = parser_.write_some(text.data(), text.size(), error);
  if (error) return false;
  if (text.substr(taken).find('{') != std::string_view::npos) return false;
  value_.emplace(parser_.release());
  return value_->is_object();
}

JsonLines::Line JsonLines::Next() {
  if (rest_.empty()) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    const absl::StatusOr<std::string_view> piece = source_.Next();
    status_ = piece.status();
    if (!piece.ok()) return Line::kFailed;
    rest_ = *piece;
    if (!begun_ && rest_.starts_with(kMark)) rest_.remove_prefix(kMark.size());
    begun_ = true;
    if (rest_.empty()) return Line::kEnd;
  }
  ++line_;
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  const bool ended = end < rest_.size();
  std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end + (ended ? 1 : 0));
  if (line.size() > kMaxLineBytes) return Line::kTooLong;
  const size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return Line::kBlank;
  if (line[first] == '#') return Line::kComment;
  const size_t open = line.find('{');
  if (open == std::string_view::npos) return Line::kText;
  line.remove_prefix(open);
  if (Parse(line)) return Line::kObject;
  if (Parse(Repaired(line))) return Line::kObject;
  return ended ? Line::kBroken : Line::kTruncated;
}

std::optional<uint64_t> WholeNumber(const json::value& value) {
  if (const uint64_t* number = value.if_uint64()) return *number;
  if (const int64_t* number = value.if_int64()) {
    return *number >= 0 ? std::optional(static_cast<uint64_t>(*number)) : std::nullopt;
  }
  constexpr double kExact = 9007199254740992;  // beyond it a double skips whole numbers
  const double* number = value.if_double();
  if (number == nullptr || !(*number >= 0 && *number <= kExact) || std::floor(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(*number);
}

std::optional<uint64_t> SecondsAsNs(double seconds) {
  const double ns = std::round(seconds * 1e9);
  if (!(ns >= 0 && ns < static_cast<double>(kMaxTime_ns))) return std::nullopt;
  return static_cast<uint64_t>(ns);
}

}  // namespace vcpulse::importing

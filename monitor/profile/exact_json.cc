#include "monitor/profile/exact_json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::profile {
namespace {

namespace json = boost::json;

// Builds the value; the names and the constants are what basic_parser asks for.
class Builder {
 public:
  static constexpr size_t max_object_size = 1000;
  static constexpr size_t max_array_size = 1000;
  static constexpr size_t max_key_size = 1000;
  static constexpr size_t max_string_size = size_t{1} << 20;

  json::value Release() { return stack_.release(); }
  void Reset() { stack_.reset(); }
  const std::string& twice() const { return twice_; }  // the field that came twice, or empty

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(size_t n, json::error_code&) {
    keys_.pop_back();
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view part, size_t, json::error_code&) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, size_t, json::error_code& error) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    std::string key = std::exchange(key_, {});
    if (keys_.back().insert(key).second) return true;
    twice_ = std::move(key);
    error = json::error::syntax;
    return false;
  }
  bool on_string_part(json::string_view part, size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, size_t, json::error_code&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(int64_t, json::string_view part, json::error_code&) { return Number(part); }
  bool on_uint64(uint64_t, json::string_view part, json::error_code&) { return Number(part); }
  bool on_double(double, json::string_view part, json::error_code&) { return Number(part); }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool Number(json::string_view part) {
    number_.append(part.data(), part.size());
    const std::string text = std::exchange(number_, {});
    // Beyond what a double holds: no limit of a field allows it.
    double value = std::numeric_limits<double>::infinity();
    std::from_chars(text.data(), text.data() + text.size(), value);
    stack_.push_double(value);
    return true;
  }

  json::value_stack stack_;
  std::string key_;
  std::string number_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string twice_;
};

absl::Status ErrorAt(std::string_view text, size_t offset, const std::string& what) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", offset - line_start + 1, ": ", what));
}

}  // namespace

absl::StatusOr<json::value> ParseExactJson(std::string_view text) {
  json::basic_parser<Builder> parser((json::parse_options()));
  parser.handler().Reset();
  json::error_code error;
  size_t used = parser.write_some(/*more=*/false, text.data(), text.size(), error);
  if (!parser.handler().twice().empty()) {
    return ErrorAt(text, used,
                   absl::StrCat("the field ", Quoted(parser.handler().twice()), " comes twice"));
  }
  if (error) return ErrorAt(text, used, absl::StrCat("no JSON: ", error.message()));
  while (used < text.size() && ToAbsl(" \t\r\n").find(text[used]) != absl::string_view::npos)
    ++used;
  if (used < text.size()) return ErrorAt(text, used, "no JSON: more text after its end");
  return parser.handler().Release();
}

}  // namespace vcpulse::profile

#include "monitor/profile/json_node.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/closest_name.h"
#include "kvm/base/text.h"
#include "monitor/profile/fields.h"

namespace vcpulse::profile {
namespace {

namespace json = boost::json;

std::string_view ToView(json::string_view text) { return {text.data(), text.size()}; }

// Builds the value; the names and the constants are what basic_parser asks for. The text comes in
// one piece: so do numbers, and only escapes cut texts and keys.
class Builder {
 public:
  static constexpr size_t max_object_size = 1000;
  static constexpr size_t max_array_size = 1000;
  static constexpr size_t max_key_size = 1000;
  static constexpr size_t max_string_size = size_t{1} << 20;
  using View = json::string_view;
  using Error = json::error_code;

  Builder() { stack_.reset(); }
  json::value Release() { return stack_.release(); }
  const std::string& twice() const { return twice_; }  // the field that came twice, or empty

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return keys_.emplace_back(), true; }
  bool on_object_end(size_t n, Error&) {
    keys_.pop_back();
    return stack_.push_object(n), true;
  }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(size_t n, Error&) { return stack_.push_array(n), true; }
  bool on_key_part(View part, size_t, Error&) {
    key_ += ToView(part);
    return stack_.push_chars(part), true;
  }
  bool on_key(View part, size_t, Error& error) {
    stack_.push_key(part);
    std::string key = std::exchange(key_, "").append(ToView(part));
    if (keys_.back().insert(key).second) return true;
    twice_ = std::move(key);
    error = json::error::syntax;
    return false;
  }
  bool on_string_part(View part, size_t, Error&) { return stack_.push_chars(part), true; }
  bool on_string(View part, size_t, Error&) { return stack_.push_string(part), true; }
  bool on_number_part(View, Error&) { return true; }
  bool on_int64(int64_t, View text, Error&) { return Number(ToView(text)); }
  bool on_uint64(uint64_t, View text, Error&) { return Number(ToView(text)); }
  bool on_double(double, View text, Error&) { return Number(ToView(text)); }
  bool on_bool(bool value, Error&) { return stack_.push_bool(value), true; }
  bool on_null(Error&) { return stack_.push_null(), true; }
  bool on_comment_part(View, Error&) { return true; }
  bool on_comment(View, Error&) { return true; }

 private:
  bool Number(std::string_view text) {
    // Beyond what a double holds: no limit of a field allows it.
    double value = std::numeric_limits<double>::infinity();
    std::from_chars(text.data(), text.data() + text.size(), value);
    return stack_.push_double(value), true;
  }

  json::value_stack stack_;
  std::string key_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string twice_;
};

// What a field holds that is not there.
const json::value kNothing;

}  // namespace

absl::StatusOr<json::value> ParseJson(std::string_view text) {
  json::basic_parser<Builder> parser((json::parse_options()));
  json::error_code error;
  const size_t used = parser.write_some(/*more=*/false, text.data(), text.size(), error);
  const std::string& twice = parser.handler().twice();
  const std::string what = !twice.empty()
                               ? absl::StrCat("the field ", Quoted(twice), " comes twice")
                           : error              ? absl::StrCat("no JSON: ", error.message())
                           : used < text.size() ? "no JSON: more text after its end"
                                                : "";
  if (what.empty()) return parser.handler().Release();
  const std::string_view before = text.substr(0, used);
  return absl::InvalidArgumentError(absl::StrCat("line ", 1 + std::ranges::count(before, '\n'),
                                                 ", column ", used - (before.rfind('\n') + 1) + 1,
                                                 ": ", what));  // npos + 1 is 0
}

std::string Hint(std::string_view text, std::span<const std::string> names,
                 const std::string& otherwise) {
  const std::string closest = DidYouMean(text, names);
  return closest.empty() ? otherwise : closest;
}

bool Node::exists() const { return &value_ != &kNothing; }

void Node::Fail(const std::string& what) const {
  if (error_.empty()) error_ = absl::StrCat(path_, path_.empty() ? "" : ": ", what);
}

void Node::FailAs(const std::string& what) const {
  const bool* truth = value_.if_bool();
  Fail(!exists()            ? "is missing"
       : value_.is_string() ? absl::StrCat(Quoted(ToView(value_.get_string())), " ", what)
       : value_.is_double() ? absl::StrCat(NumberText(value_.get_double()), " ", what)
       : truth != nullptr   ? absl::StrCat(*truth ? "true " : "false ", what)
       : value_.is_array()  ? "a list " + what
       : value_.is_object() ? "an object " + what
                            : "null " + what);
}

bool Node::IsObjectOf(const std::vector<std::string>& known) const {
  const bool are_few = known.size() <= 7;  // more names are no help in one line
  const std::string names = are_few ? absl::StrJoin(known, ", ") : "";
  if (!value_.is_object()) {
    FailAs(absl::StrCat("is not an object", are_few ? " of " : "", names));
    return false;
  }
  for (const auto& member : value_.get_object()) {
    const std::string_view key = ToView(member.key());
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string quoted = Quoted(key);
    const bool plain = !key.empty() && quoted == absl::StrCat("'", ToAbsl(key), "'");
    (*this)[plain ? key : quoted].Fail(
        "no such field" +
        Hint(key, known,
             are_few ? "; there are " + names : "; `vcpulse list profiles generic` shows all"));
    return false;
  }
  return true;
}

Node Node::operator[](std::string_view key) const {
  const json::object* object = value_.if_object();
  const json::value* value = object ? object->if_contains({key.data(), key.size()}) : nullptr;
  return {value != nullptr ? *value : kNothing,
          absl::StrCat(path_, path_.empty() ? "" : ".", ToAbsl(key)), error_};
}

std::vector<Node> Node::List(size_t least, size_t most, const std::string& of_what) const {
  std::vector<Node> nodes;
  const json::array* list = value_.if_array();
  if (list == nullptr || list->size() < least || list->size() > most) {
    Fail(absl::StrCat("must be a list of ", least == most ? "" : absl::StrCat(least, " to "), most,
                      " ", of_what));
    return nodes;
  }
  for (const json::value& value : *list) {
    nodes.push_back({value, absl::StrCat(path_, "[", nodes.size(), "]"), error_});
  }
  return nodes;
}

std::string Node::Text(size_t longest) const {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const json::string* text = value_.if_string();
  if (text != nullptr && !text->empty() && text->size() <= longest &&
      std::ranges::none_of(*text, is_control)) {
    return std::string(ToView(*text));
  }
  FailAs(absl::StrCat("is not one line of text of 1 to ", longest, " bytes"));
  return "";
}

double Node::Number() const {
  if (!value_.is_double()) FailAs("is not a number");
  return value_.is_double() ? value_.get_double() : 0;
}

uint64_t Node::Code(uint64_t highest) const {
  std::optional<uint64_t> code;
  if (const json::string* text = value_.if_string(); text != nullptr && text->starts_with("0x")) {
    code = ParseNumber<uint64_t>(ToView(*text).substr(2), 16);
  } else if (const double number = value_.is_double() ? value_.get_double() : -1;
             number >= 0 && number <= static_cast<double>(highest) &&
             std::trunc(number) == number) {
    code = static_cast<uint64_t>(number);
  }
  if (code && *code <= highest) return *code;
  FailAs("is not a code: a whole number, or a text such as \"0x40ec\"");
  return 0;
}

}  // namespace vcpulse::profile

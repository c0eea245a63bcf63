#include "monitor/profile/json_fields.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "kvm/events/closest_name.h"
#include "monitor/profile/fields.h"

namespace vcpulse::profile {
namespace {

namespace json = boost::json;

std::string_view ToView(json::string_view text) { return {text.data(), text.size()}; }

// More names than this are no help in one line.
constexpr size_t kMostNamed = 6;

}  // namespace

absl::Status WrongField(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

std::string Join(const std::string& path, std::string_view key) {
  return absl::StrCat(path, path.empty() ? "" : ".", ToAbsl(key));
}

std::string Described(const json::value& value) {
  if (const json::string* text = value.if_string()) return Quoted(ToView(*text));
  if (const double* number = value.if_double()) return NumberText(*number);
  if (const bool* truth = value.if_bool()) return *truth ? "true" : "false";
  return value.is_array() ? "a list" : value.is_object() ? "an object" : "null";
}

const json::value* Find(const json::object& object, std::string_view key) {
  return object.if_contains({key.data(), key.size()});
}

absl::Status CheckKeys(const json::object& object, const std::string& path,
                       std::span<const std::string> known) {
  for (const auto& member : object) {
    const std::string_view key = ToView(member.key());
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string nearest = kvm::ClosestName(key, known);
    const std::string help = !nearest.empty() ? absl::StrCat("; is '", nearest, "' meant?")
                             : known.size() <= kMostNamed
                                 ? absl::StrCat("; there are ", absl::StrJoin(known, ", "))
                                 : "; `vcpulse list profiles generic` shows all";
    const bool plain = !key.empty() && Quoted(key) == absl::StrCat("'", ToAbsl(key), "'");
    return WrongField(plain ? Join(path, key) : Join(path, Quoted(key)),
                      absl::StrCat("no such field", help));
  }
  return absl::OkStatus();
}

absl::StatusOr<const json::object*> ReadObject(const json::value& value, const std::string& path,
                                               std::span<const std::string> known) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return WrongField(
        path, absl::StrCat(Described(value), " is no object of ", absl::StrJoin(known, ", ")));
  }
  if (absl::Status status = CheckKeys(*object, path, known); !status.ok()) return status;
  return object;
}

absl::StatusOr<std::string> ReadText(const json::object& object, const std::string& path,
                                     std::string_view key, size_t longest) {
  const std::string here = Join(path, key);
  const json::value* value = Find(object, key);
  if (value == nullptr) return WrongField(here, "is missing, and must be a text");
  const json::string* text = value->if_string();
  if (text == nullptr) return WrongField(here, absl::StrCat(Described(*value), " is no text"));
  if (text->empty()) return WrongField(here, "is empty");
  if (text->size() > longest) {
    return WrongField(here, absl::StrCat("is longer than ", longest, " bytes"));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(*text, is_control)) {
    return WrongField(here, absl::StrCat(Described(*value), " is not one line of plain text"));
  }
  return std::string(ToView(*text));
}

absl::StatusOr<double> ReadNumber(const json::value& value, const std::string& path) {
  const double* number = value.if_double();
  if (number == nullptr) return WrongField(path, absl::StrCat(Described(value), " is no number"));
  return *number;
}

absl::StatusOr<uint64_t> ReadCode(const json::value& value, const std::string& path,
                                  uint64_t highest) {
  std::optional<uint64_t> code;
  if (const json::string* text = value.if_string(); text != nullptr && text->starts_with("0x")) {
    code = ParseNumber<uint64_t>(ToView(*text).substr(2), 16);
  }
  const double* number = value.if_double();
  if (number != nullptr && *number >= 0 && *number <= static_cast<double>(highest) &&
      std::trunc(*number) == *number) {
    code = static_cast<uint64_t>(*number);
  }
  if (!code || *code > highest) {
    return WrongField(path, absl::StrCat(Described(value),
                                         " is no code: a whole number, or a text "
                                         "such as \"0x40ec\""));
  }
  return *code;
}

}  // namespace vcpulse::profile

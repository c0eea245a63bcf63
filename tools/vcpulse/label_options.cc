#include "tools/vcpulse/label_options.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::tools {
namespace {

using Label = recorder::HostIdentity::Label;

constexpr size_t kMostLabels = 32;
constexpr size_t kLongestKey = 63;
constexpr size_t kLongestValue = 253;

bool IsKey(std::string_view key) {
  const auto is_part = [](char c) { return c == '_' || absl::ascii_isalnum(c); };
  return !key.empty() && key.size() <= kLongestKey && !absl::ascii_isdigit(key.front()) &&
         !key.starts_with("__") && std::ranges::all_of(key, is_part);
}

bool IsValue(std::string_view value) {
  std::string utf8(value);
  MakeUtf8(&utf8);
  if (utf8 != value) return false;
  return !value.empty() && value.size() <= kLongestValue &&
         value.find(',') == std::string_view::npos && Printable(value) == value;
}

}  // namespace

absl::StatusOr<std::vector<Label>> ParseLabels(const std::vector<std::string>& texts) {
  std::vector<Label> labels;
  for (const std::string& text : texts) {
    const auto refuse = [&text](std::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat("--label ", Quoted(text), ": ", std::string(why)));
    };
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return refuse("write KEY=VALUE, such as rack=12");
    Label label{.key = text.substr(0, equals), .value = text.substr(equals + 1)};
    if (!IsKey(label.key)) {
      return refuse(
          "a key is of letters, digits and _, does not begin with a digit or __, and has at most "
          "63 bytes");
    }
    if (!IsValue(label.value)) {
      return refuse("a value is text of one line without commas, 1 to 253 bytes");
    }
    if (std::ranges::count(labels, label.key, &Label::key) > 0) {
      return refuse("this key is given twice");
    }
    labels.push_back(std::move(label));
  }
  if (labels.size() > kMostLabels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--label: ", labels.size(), " labels are given, and ", kMostLabels, " is the most"));
  }
  std::ranges::sort(labels, {}, &Label::key);
  return labels;
}

}  // namespace vcpulse::tools

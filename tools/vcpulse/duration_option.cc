#include "tools/vcpulse/duration_option.h"

#include <cctype>
#include <charconv>

#include "absl/strings/str_cat.h"

namespace vcpulse::tools {
namespace {

// 292 years fit into int64 nanoseconds; deadlines and offsets are added to instants.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);

// Digits with at most one point.
bool IsPlainNumber(const std::string& text) {
  size_t digits = 0;
  size_t points = 0;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      ++digits;
    } else if (c == '.') {
      ++points;
    } else {
      return false;
    }
  }
  return digits > 0 && points <= 1;
}

bool StartsLikeNumber(const std::string& text) {
  return !text.empty() &&
         (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '.');
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDurationOption(const std::string& flag,
                                                   const std::string& text) {
  const std::string what = absl::StrCat(flag, ": '", text, "' ");
  if (IsPlainNumber(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "has no unit: write ", text, "s or ", text, "ms"));
  }
  if (text.size() > 1 && text[0] == '-' && StartsLikeNumber(text.substr(1))) {
    return absl::InvalidArgumentError(absl::StrCat(what, "is negative"));
  }
  absl::Duration duration;
  // ParseDuration knows "inf" and signs too, which are no durations to wait for.
  if (!StartsLikeNumber(text) || !absl::ParseDuration(text, &duration)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "is not a duration: write for example 100ms, 1.5s, 2m or 1h"));
  }
  if (duration > kLongest) {
    return absl::InvalidArgumentError(absl::StrCat(what, "is too long"));
  }
  return duration;
}

absl::StatusOr<absl::Duration> ParseLongDurationOption(const std::string& flag,
                                                       const std::string& text) {
  const bool is_days = text.ends_with('d') && IsPlainNumber(text.substr(0, text.size() - 1));
  if (!is_days) {
    auto duration = ParseDurationOption(flag, text);
    if (duration.ok() || !IsPlainNumber(text)) return duration;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' has no unit: write ", text, "h or ", text, "d"));
  }
  const std::string days = text.substr(0, text.size() - 1);
  double number = 0;
  std::from_chars(days.data(), days.data() + days.size(), number, std::chars_format::fixed);
  if (number > absl::ToDoubleHours(kLongest) / 24) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' is too long"));
  }
  return number * absl::Hours(24);
}

}  // namespace vcpulse::tools

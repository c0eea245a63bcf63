#include "tools/vcpulse/values.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

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

constexpr uint64_t kLargest = uint64_t{1} << 60;
constexpr std::string_view kPrefixes = "KMGT";

// What one of `unit` is; nothing where it is none.
std::optional<double> BytesOf(std::string_view unit) {
  if (unit == "B") return 1;
  const size_t power = unit.empty() ? std::string_view::npos : kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "iB" && rest != "B") return std::nullopt;
  double bytes = 1;
  for (size_t i = 0; i <= power; ++i) bytes *= rest == "B" ? 1000 : 1024;
  return bytes;
}

constexpr double kSlowest = 0.001;
constexpr double kFastest = 1e6;

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

absl::StatusOr<absl::Duration> ParseTimeOption(const std::string& flag, const std::string& text) {
  auto duration = ParseDurationOption(flag, text);
  if (text == "0" || (duration.ok() && *duration <= absl::ZeroDuration())) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": must be more than 0"));
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

absl::StatusOr<uint64_t> ParseSizeOption(const std::string& flag, const std::string& text) {
  const std::string what = absl::StrCat(flag, ": '", Printable(text), "' ");
  if (text.size() > 1 && text.front() == '-' && text[1] >= '0' && text[1] <= '9') {
    return absl::InvalidArgumentError(absl::StrCat(what, "is negative"));
  }
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const bool is_number = parsed.ec == std::errc() && text.front() >= '0' && text.front() <= '9';
  if (is_number && parsed.ptr == end) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "has no unit: write ", text, "M or ", text, "G"));
  }
  const std::optional<double> unit =
      is_number ? BytesOf({parsed.ptr, static_cast<size_t>(end - parsed.ptr)}) : std::nullopt;
  if (!unit) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, "is not a size: write for example 64MiB, 1.5G or 500MB"));
  }
  const double bytes = number * *unit;
  if (bytes > static_cast<double>(kLargest)) {
    return absl::InvalidArgumentError(absl::StrCat(what, "is too large"));
  }
  return static_cast<uint64_t>(bytes);
}

absl::StatusOr<std::optional<double>> ParseSpeed(const std::string& text) {
  if (text == "max") return std::nullopt;
  double speed = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, speed, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(speed > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--speed: '", text, "' is not a speed: write 1, 10, 0.5 or max"));
  }
  if (speed < kSlowest || speed > kFastest) {
    return absl::InvalidArgumentError(absl::StrCat("--speed: ", text, " is not between ", kSlowest,
                                                   " and ", kFastest, "; max waits for nothing"));
  }
  return speed;
}

CLI::Option* AddRepeatable(CLI::App& command, const std::string& name,
                           std::vector<std::string>& values, const std::string& help) {
  return command
      .add_option(
          name,
          [&values](const std::vector<std::string>& given) {
            values = given;
            return true;
          },
          help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddAllowSkip(CLI::App& command, bool& allow_skip) {
  command.add_flag("--allow-skip", allow_skip,
                   "Exit 0 where something passed and all the rest was skipped");
}

void SpellOutEmptyValues(std::vector<std::string>& arguments) {
  std::vector<std::string> spelt_out;
  for (std::string& argument : arguments) {
    const bool is_option = argument.starts_with("--") && argument.size() > 3;
    const bool is_empty = is_option && argument.find('=') == argument.size() - 1;
    if (is_empty) argument.pop_back();
    spelt_out.push_back(std::move(argument));
    if (is_empty) spelt_out.emplace_back();
  }
  arguments = std::move(spelt_out);
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/size_option.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"

namespace vcpulse::tools {
namespace {

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

}  // namespace

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

std::string SizeText(uint64_t bytes) {
  if (bytes < 1024) return Plural(bytes, "byte");
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  auto number = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; number >= 1023.95 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  std::string text = absl::StrFormat("%.1f", number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  text += ' ';
  text += kUnits[unit];
  return text;
}

}  // namespace vcpulse::tools

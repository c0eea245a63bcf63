#include "tools/vcpulse/speed_option.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace vcpulse::tools {
namespace {

constexpr double kSlowest = 0.001;
constexpr double kFastest = 1e6;

}  // namespace

absl::StatusOr<std::optional<double>> ParseSpeed(const std::string& text) {
  if (text == "max") return std::nullopt;
  double speed = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, speed, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(speed > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--speed: '", text, "' is no speed: write 1, 10, 0.5 or max"));
  }
  if (speed < kSlowest || speed > kFastest) {
    return absl::InvalidArgumentError(absl::StrCat("--speed: ", text, " is not between ", kSlowest,
                                                   " and ", kFastest, "; max waits for nothing"));
  }
  return speed;
}

}  // namespace vcpulse::tools

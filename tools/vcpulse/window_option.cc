#include "tools/vcpulse/window_option.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {

absl::StatusOr<Window> ParseWindow(const std::string& flag, const std::string& text) {
  const absl::StatusOr<absl::Duration> length =
      text.ends_with('d') ? ParseLongDurationOption(flag, text) : ParseDurationOption(flag, text);
  if (!length.ok()) return length.status();
  const auto refuse = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", Quoted(text), why));
  };
  if (*length < absl::Milliseconds(1)) return refuse(" is shorter than 1ms, the shortest window");
  if (*length > absl::Hours(24)) return refuse(" is longer than 24h, the longest window");
  return Window{.length_ns = absl::ToInt64Nanoseconds(*length),
                .name = absl::FormatDuration(*length)};
}

absl::StatusOr<std::vector<Window>> ParseWindows(const std::string& flag, const std::string& text) {
  std::vector<Window> windows;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    auto window = ParseWindow(flag, std::string(part));
    if (!window.ok()) return window.status();
    if (std::ranges::find(windows, *window) != windows.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": ", Quoted(std::string(part)), " is given twice"));
    }
    windows.push_back(*std::move(window));
  }
  return windows;
}

}  // namespace vcpulse::tools

#include "tools/vcpulse/rollup_options.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/rollup/store/derived_store.h"
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

namespace {

constexpr int64_t kShortestRollup_ns = 1'000'000'000;
constexpr absl::Duration kShortestKept = absl::Seconds(1);

// "raw, parquet, 10s, 1m".
std::string LevelNames(const Levels& levels) {
  std::string names = "raw, parquet";
  for (const rollup::StoredLevel& level : levels.rollups) absl::StrAppend(&names, ", ", level.name);
  return names;
}

absl::Status ReadKept(const std::string& text, Levels& levels) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: ", Quoted(text), " is not LEVEL=DURATION: write raw=2d, or 10s=30d"));
  }
  const std::string name = text.substr(0, equals);
  const auto age = ParseLongDurationOption("--keep", text.substr(equals + 1));
  if (!age.ok()) return age.status();
  if (*age < kShortestKept) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: ", text.substr(equals + 1), " is less than 1s"));
  }
  std::optional<int64_t>* kept_ns = &levels.raw_age_ns;
  if (name == "parquet") {
    if (!levels.parquet) {
      return absl::InvalidArgumentError("--keep: parquet means nothing without --parquet DIR");
    }
    kept_ns = &levels.parquet_age_ns;
  } else if (name != "raw") {
    const auto window = ParseWindow("--keep", name);
    const auto level =
        window.ok() ? std::ranges::find(levels.rollups, window->name, &rollup::StoredLevel::name)
                    : levels.rollups.end();
    if (level == levels.rollups.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--keep: no level ", Quoted(name), "; levels are: ", LevelNames(levels),
                       levels.rollups.empty() ? " (--rollup adds others)" : ""));
    }
    kept_ns = &level->max_age_ns;
  }
  if (kept_ns->has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--keep: ", Quoted(name), " is given twice"));
  }
  *kept_ns = absl::ToInt64Nanoseconds(*age);
  return absl::OkStatus();
}

}  // namespace

void AddLevelOptions(CLI::App& command, LevelOptions& options) {
  command
      .add_option("--rollup", options.rollup,
                  "also keep sums per vCPU and window of these lengths: "
                  "DIR/.rollup/10s/date=.../host=AGENT/*.csv")
      ->type_name("DURATION,...");
  command
      .add_option("--parquet", options.parquet,
                  "also write ticks as Parquet: DIR/date=.../host=AGENT/*.parquet")
      ->type_name("DIR");
  command
      .add_option("--keep", options.keep,
                  "how long each level is kept, raw being the timelines, as --keep-for "
                  "(raw=2d,10s=30d,1m=400d,parquet=90d) [for ever]")
      ->type_name("LEVEL=DURATION,...");
}

absl::StatusOr<Levels> ParseLevels(const LevelOptions& options) {
  Levels levels;
  if (options.rollup) {
    const auto windows = ParseWindows("--rollup", *options.rollup);
    if (!windows.ok()) return windows.status();
    for (const Window& window : *windows) {
      if (window.length_ns % kShortestRollup_ns != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--rollup: ", Quoted(window.name), " is not whole seconds"));
      }
      if (rollup::kDay_ns % window.length_ns != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--rollup: ", Quoted(window.name),
                         " does not divide 24h: write for example 10s, 1m, 15m or 1h"));
      }
      levels.rollups.push_back({.length_ns = window.length_ns, .name = window.name});
    }
  }
  levels.parquet = options.parquet;
  if (options.keep) {
    for (absl::string_view part : absl::StrSplit(*options.keep, ',')) {
      if (absl::Status status = ReadKept(std::string(part), levels); !status.ok()) return status;
    }
  }
  return levels;
}

}  // namespace vcpulse::tools

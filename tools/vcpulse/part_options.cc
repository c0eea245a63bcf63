#include "tools/vcpulse/part_options.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

absl::StatusOr<std::optional<int64_t>> ParseOffset(const std::string& flag,
                                                   const std::string& text) {
  if (text.empty()) return std::nullopt;
  const absl::StatusOr<absl::Duration> duration = ParseDurationOption(flag, text);
  if (!duration.ok()) return duration.status();
  return absl::ToInt64Nanoseconds(*duration);
}

}  // namespace

void AddPartOptions(CLI::App& command, PartOptions& options) {
  command.add_option(
      "--from", options.from,
      "Leave out what came before this time after the recording's start (2s, 300ms)");
  command.add_option("--until", options.until, "Leave out what came after this time");
  command
      .add_option("--phase", options.phase,
                  "Only the spans of this phase, each from its marker to the next")
      ->type_name("NAME")
      ->excludes("--from")
      ->excludes("--until");
}

absl::StatusOr<reading::Part> ParsePart(const PartOptions& options) {
  const auto from = ParseOffset("--from", options.from);
  if (!from.ok()) return from.status();
  const auto until = ParseOffset("--until", options.until);
  if (!until.ok()) return until.status();
  if (*until && from->value_or(0) >= **until) {
    return absl::InvalidArgumentError(
        absl::StrCat("--until ", options.until, " is not after --from ",
                     options.from.empty() ? "0s (the start)" : options.from));
  }
  return reading::Part{.from_ns = *from, .to_ns = *until, .phase = options.phase};
}

std::string NothingInPart(const PartOptions& options) {
  if (options.phase) {
    return absl::StrCat("no tick in phase '", Printable(*options.phase), "'");
  }
  return absl::StrCat("no tick in the part asked for (from ",
                      options.from.empty() ? "the start" : options.from, " to ",
                      options.until.empty() ? "the end" : options.until, ")");
}

}  // namespace vcpulse::tools

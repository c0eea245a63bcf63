#include "tools/vcpulse/part_options.h"

#include <algorithm>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kvm/base/closest_name.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/progress.h"
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

template <typename IsListed>
std::string Keys(const IsListed& is_listed) {
  std::vector<std::string> keys;
  for (const metric::Info& info : metric::Table()) {
    if (is_listed(info)) keys.emplace_back(info.key);
  }
  return absl::StrJoin(keys, ", ");
}

}  // namespace

void AddPartOptions(CLI::App& command, PartOptions& options) {
  command
      .add_option("--from", options.from,
                  "start at this time after the beginning of the recording (2s, 300ms)")
      ->type_name("TIME");
  command.add_option("--until", options.until, "end at this time")->type_name("TIME");
  command
      .add_option("--phase", options.phase,
                  "only this phase: from each marker of this name to the next marker; not with "
                  "--from or --until")
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

std::optional<uint64_t> BytesOfPart(const timeline::Input& input, const PartOptions& options,
                                    uint64_t readings) {
  if (!options.from.empty() || !options.until.empty()) return std::nullopt;
  return BytesToRead(input.paths(), options.phase ? readings + 1 : readings);
}

std::string NothingInPart(const PartOptions& options) {
  if (options.phase) {
    return absl::StrCat("no tick in phase '", Printable(*options.phase), "'");
  }
  return absl::StrCat("no tick in the part asked for (from ",
                      options.from.empty() ? "the start" : options.from, " to ",
                      options.until.empty() ? "the end" : options.until, ")");
}

absl::StatusOr<std::vector<metric::Metric>> ParseMetrics(const std::string& keys) {
  std::vector<metric::Metric> metrics;
  for (const auto& part : absl::StrSplit(keys, ',')) {
    const std::string key(part);
    const std::optional<metric::Metric> metric = metric::FindMetric(key);
    if (!metric) {
      const std::string all = Keys([](const metric::Info&) { return true; });
      const std::vector<std::string> names = absl::StrSplit(all, ", ");
      return absl::InvalidArgumentError(absl::StrCat(
          "'", Printable(key), "' is not a metric; metrics are: ", all, DidYouMean(key, names)));
    }
    if (std::ranges::find(metrics, *metric) == metrics.end()) metrics.push_back(*metric);
  }
  return metrics;
}

std::string MetricLines(bool (*is_listed)(const metric::Info&), const std::string& behind) {
  std::string lines;
  for (const metric::Info& info : metric::Table()) {
    if (!is_listed(info)) continue;
    absl::StrAppend(&lines, "  ", ToAbsl(info.key), info.IsShare() ? "" : behind, "  ",
                    ToAbsl(info.help), "\n");
  }
  return lines;
}

std::string RowMetrics() {
  return Keys([](const metric::Info& info) { return info.row_decimals > 0; });
}

}  // namespace vcpulse::tools

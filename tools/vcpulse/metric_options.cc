#include "tools/vcpulse/metric_options.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kKeyWidth = 18;

template <typename IsListed>
std::string Keys(const IsListed& is_listed) {
  std::vector<std::string> keys;
  for (const metric::Info& info : metric::Table()) {
    if (is_listed(info)) keys.emplace_back(info.key);
  }
  return absl::StrJoin(keys, ", ");
}

}  // namespace

absl::StatusOr<std::vector<metric::Metric>> ParseMetrics(const std::string& keys) {
  std::vector<metric::Metric> metrics;
  for (const auto& part : absl::StrSplit(keys, ',')) {
    const std::string key(part);
    const std::optional<metric::Metric> metric = metric::FindMetric(key);
    if (!metric) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", Printable(key),
          "' is no metric; there are: ", Keys([](const metric::Info&) { return true; })));
    }
    if (std::ranges::find(metrics, *metric) == metrics.end()) metrics.push_back(*metric);
  }
  return metrics;
}

std::string MetricLines(bool (*is_listed)(const metric::Info&), const std::string& behind) {
  std::string lines;
  for (const metric::Info& info : metric::Table()) {
    if (!is_listed(info)) continue;
    std::string key = absl::StrCat("  ", ToAbsl(info.key), info.IsShare() ? "" : behind, "  ");
    key.resize(std::max(key.size(), kKeyWidth), ' ');
    lines += report::Wrapped(key, info.help);
  }
  return lines;
}

std::string RowMetrics() {
  return Keys([](const metric::Info& info) { return info.row_decimals > 0; });
}

}  // namespace vcpulse::tools

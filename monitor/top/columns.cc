#include "monitor/top/columns.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kvm/base/text.h"
#include "monitor/report/text_format.h"
#include "monitor/top/rows.h"

namespace vcpulse::top {
namespace {

using metric::Metric;

constexpr Column OfMetric(Metric metric, std::string_view name, std::string_view head, size_t width,
                          bool is_shown = true) {
  return {.name = name, .head = head, .width = width, .metric = metric, .is_shown = is_shown};
}

constexpr auto kColumns = std::to_array<Column>({
    OfMetric(Metric::kSpinning, "spinning", "SPIN", 5),
    OfMetric(Metric::kProductive, "productive", "PROD", 5),
    OfMetric(Metric::kHalted, "halted", "HALT", 5),
    OfMetric(Metric::kIpc, "ipc", "IPC", 5),
    OfMetric(Metric::kUnknown, "unknown", "UNKN", 5),
    OfMetric(Metric::kStarved, "starved", "STARV", 5),
    OfMetric(Metric::kRunDelay, "run_delay", "DELAY", 5),
    OfMetric(Metric::kResidency, "residency", "RESID", 5),
    OfMetric(Metric::kGhz, "ghz", "GHz", 5),
    {.name = "cpu", .head = "CPU", .width = 4, .kind = Column::Kind::kCpu},
    OfMetric(Metric::kExits, "exits", "EXIT/s", 6),
    OfMetric(Metric::kHaltPoll, "halt_poll", "POLL", 5),
    {.name = "hot", .head = "HOT", .width = 18, .kind = Column::Kind::kHot},
    OfMetric(Metric::kRun, "run", "RUN", 5, false),
    OfMetric(Metric::kConfidence, "confidence", "CONF", 5, false),
    OfMetric(Metric::kRunning, "running_share", "CNTED", 5, false),
    OfMetric(Metric::kBranchMissRate, "branch_miss_rate", "BRMISS", 6, false),
    OfMetric(Metric::kCacheMissRate, "cache_miss_rate", "CAMISS", 6, false),
    OfMetric(Metric::kMigrations, "migrations", "MIGR/s", 6, false),
    OfMetric(Metric::kPreemptions, "preemptions", "PREE/s", 6, false),
    OfMetric(Metric::kHaltExits, "halt_exits", "HLT/s", 6, false),
    OfMetric(Metric::kIoExits, "io_exits", "IO/s", 6, false),
    OfMetric(Metric::kNumaRemote, "numa_remote", "NUMA", 5, false),
    OfMetric(Metric::kSmtShared, "smt_shared", "SMT", 5, false),
});

// The address with most samples.
std::optional<size_t> Hottest(const v1::HotAddresses& hot) {
  const auto most = std::ranges::max_element(hot.samples());
  if (most == hot.samples().end()) return std::nullopt;
  const auto at = static_cast<size_t>(most - hot.samples().begin());
  if (at >= static_cast<size_t>(hot.addresses_size())) return std::nullopt;
  return at;
}

std::string HotText(const v1::HotAddresses& hot) {
  const auto at = Hottest(hot);
  if (!at) return "-";
  const int i = static_cast<int>(*at);
  if (i < hot.functions_size() && !hot.functions(i).empty()) return Printable(hot.functions(i));
  return absl::StrFormat("%#x", hot.addresses(i));
}

std::string NumberText(const Column& column, double value) {
  const metric::Info& info = metric::InfoOf(column.metric);
  if (info.IsShare()) return absl::StrFormat("%.1f", value * 100);
  std::string text = report::MetricText(info, value);
  return text.size() <= column.width ? text : report::Units(value);
}

}  // namespace

std::span<const Column> Columns() { return kColumns; }

std::optional<size_t> FindColumn(std::string_view name) {
  const auto found = std::ranges::find(kColumns, name, &Column::name);
  if (found == kColumns.end()) return std::nullopt;
  return static_cast<size_t>(found - kColumns.begin());
}

std::string_view HelpOf(const Column& column) {
  switch (column.kind) {
    case Column::Kind::kCpu:
      return "of the host, on which its thread ran last";
    case Column::Kind::kHot:
      return "the code with most samples (record --hotspots)";
    case Column::Kind::kMetric:
      break;
  }
  return metric::InfoOf(column.metric).help;
}

std::string TextOf(const Column& column, const Row& row) {
  switch (column.kind) {
    case Column::Kind::kCpu:
      return row.cpu ? absl::StrCat(*row.cpu) : "-";
    case Column::Kind::kHot:
      return row.hot != nullptr ? HotText(*row.hot) : "-";
    case Column::Kind::kMetric:
      break;
  }
  const auto value = KnownValue(column.metric, row.totals, row.degraded);
  return value ? NumberText(column, *value) : "-";
}

std::optional<double> SortValue(const Column& column, const Row& row) {
  switch (column.kind) {
    case Column::Kind::kCpu:
      if (!row.cpu) return std::nullopt;
      return static_cast<double>(*row.cpu);
    case Column::Kind::kHot: {
      const auto at = row.hot != nullptr ? Hottest(*row.hot) : std::nullopt;
      if (!at) return std::nullopt;
      return static_cast<double>(row.hot->samples(static_cast<int>(*at)));
    }
    case Column::Kind::kMetric:
      break;
  }
  return KnownValue(column.metric, row.totals, row.degraded);
}

}  // namespace vcpulse::top

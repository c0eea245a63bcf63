// docs/metrics.md lists what the table has.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "monitor/metric/metric.h"

namespace vcpulse::metric {
namespace {

std::string Text(std::string_view text) { return std::string(text); }

std::string MetricRow(const Info& info) {
  const std::string unit = info.IsShare() ? "share" : Text(info.unit_text);
  std::string json = "`" + Text(info.report_key) + "`";
  if (info.report_key.empty()) json = info.IsShare() ? "in `share`" : "in `ipc`";
  return "| `" + Text(info.key) + "` | " + Text(info.label) + " | " + unit + " | " +
         Text(info.help) + " | " + json + " | " + (info.row_decimals > 0 ? "yes" : "") + " | " +
         (info.asked ? "yes" : "") + " |\n";
}

std::string CounterRow(const Counter& counter) {
  return "| `" + Text(counter.name) + "` | " + Text(counter.help) + " |\n";
}

TEST(MetricDocs, HaveEachMetricAndEachCounterAndNoOther) {
  std::string wanted;
  for (const Info& info : Table()) wanted += MetricRow(info);
  for (const Info& info : Table()) {
    for (const Counter& counter : info.counters) {
      if (counter.of != nullptr) wanted += CounterRow(counter);
    }
  }
  std::ifstream docs(VCPULSE_METRICS_DOC);
  std::string rows;
  for (std::string line; std::getline(docs, line);) {
    if (line.starts_with("| `")) rows += line + "\n";
  }
  EXPECT_EQ(rows, wanted);
}

}  // namespace
}  // namespace vcpulse::metric

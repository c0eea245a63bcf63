#pragma once

// The numbers beside a strip: each column is a metric of the one table, or says where and what the
// vCPU ran.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "monitor/metric/metric.h"

namespace vcpulse::top {

struct Row;

struct Column {
  enum class Kind : uint8_t {
    kMetric,
    kCpu,  // of the host, where its thread ran last
    kHot,  // the function or address with most samples
  };

  std::string_view name;  // of a metric: its key
  std::string_view head;  // as wide as the column at most
  size_t width = 0;       // without the space before it
  Kind kind = Kind::kMetric;
  metric::Metric metric = metric::Metric::kEnd;
  bool is_shown = true;  // to begin with
};

// From left to right; the first ones are kept where there is little room.
std::span<const Column> Columns();
std::optional<size_t> FindColumn(std::string_view name);

// One line.
std::string_view HelpOf(const Column& column);

// What stands in that column: "-" where nothing was measured.
std::string TextOf(const Column& column, const Row& row);
// What rows are sorted by; nothing sorts last. Of kHot the samples.
std::optional<double> SortValue(const Column& column, const Row& row);

}  // namespace vcpulse::top

#pragma once

// What the rows of jsonl and csv have in common.

#include "monitor/metric/metric.h"

namespace vcpulse::exporting {

inline constexpr int kShareDecimals = 9;  // of the share in which an event was counted

// Calls `add` with each metric that is a column, in their order.
template <typename Add>
void ForEachRowMetric(const Add& add) {
  for (const metric::Info& info : metric::Table()) {
    if (info.row_decimals > 0) add(info);
  }
}

}  // namespace vcpulse::exporting

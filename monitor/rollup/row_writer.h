#pragma once

#include "absl/status/status.h"
#include "monitor/rollup/row.h"

namespace vcpulse::rollup {

// Rows as a table of some format: the columns of Columns(), in order. One thread.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  // Errors: those of the sink that takes the bytes.
  virtual absl::Status Add(const Row& row) = 0;
  // After the last row, also where there was none: completes the table. Errors: those of the sink.
  virtual absl::Status Finish() = 0;
};

}  // namespace vcpulse::rollup

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/parquet/writer.h"
#include "monitor/rollup/row_writer.h"

namespace vcpulse::rollup {

// Rows as a Parquet file: INT64 and STRING columns, optional where a value can be null. Memory: one
// row group. One thread.
class RowParquet final : public RowWriter {
 public:
  // The file's metadata.
  struct Notes {
    std::string version;  // of this program
    std::string window;   // "10s"; "10s,1m" where rows of both are in the file
  };

  // Errors: those of parquet::Writer::Create.
  static absl::StatusOr<std::unique_ptr<RowParquet>> Create(parquet::Sink sink, const Notes& notes);

  absl::Status Add(const Row& row) override;
  // Writes the rows that wait, and the footer: without it there is no Parquet file.
  absl::Status Finish() override { return writer_->Finish(); }

 private:
  explicit RowParquet(std::unique_ptr<parquet::Writer> writer) : writer_(std::move(writer)) {}

  std::unique_ptr<parquet::Writer> writer_;
};

}  // namespace vcpulse::rollup

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/interval_table.h"
#include "monitor/parquet/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// An IntervalTable as a Parquet file: the columns and values of CsvExport, numbers as numbers, null
// where a cell of the CSV is empty. docs/parquet.md lists types and the keys of the file's
// metadata. A count beyond INT64_MAX, which only a damaged timeline has, is null. Memory: one row
// group.
class ParquetExport final : public Exporter {
 public:
  // `version` is that of this program.
  ParquetExport(Sink sink, std::string version)
      : sink_(std::move(sink)), version_(std::move(version)) {}

  // IntervalTable::Expect.
  void Expect(const v1::VcpuSet& set) { table_.Expect(set); }

  // Errors: those of the sink, and of IntervalTable::Add.
  absl::Status Add(const timeline::Entry& entry) override;
  // Nothing: a row group is handed over as soon as it is full.
  absl::Status Flush() override { return absl::OkStatus(); }
  // Writes the rows that wait, and the footer: without it there is no Parquet file.
  absl::Status Finish() override;
  uint64_t unusable_ticks() const override { return table_.unusable_ticks(); }

 private:
  absl::Status Begin();
  void AddMetadata();

  Sink sink_;
  std::string version_;
  IntervalTable table_;
  std::unique_ptr<parquet::Writer> writer_;  // null before the first row
  // Of the vCPU sets that came.
  std::set<std::string, std::less<>> classifiers_;
  std::set<std::string, std::less<>> event_sets_;
};

}  // namespace vcpulse::exporting

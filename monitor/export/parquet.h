#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/interval_table.h"
#include "monitor/parquet/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// The columns of a table as those of a Parquet file.
std::vector<parquet::Column> ParquetSchema(const std::vector<TableColumn>& columns);

// Takes the cells of a row from IntervalTable::PutRow and hands them to a parquet::Writer. A count
// beyond INT64_MAX, which only a damaged timeline has, is null.
template <typename Writer>
struct ParquetRow {
  Writer& writer;

  void AddInteger(std::integral auto number) {
    if (std::cmp_greater(number, std::numeric_limits<int64_t>::max())) {
      writer.AddNull();
    } else {
      writer.AddInteger(static_cast<int64_t>(number));
    }
  }
  // The number of the CSV, so that both are one table.
  void AddDecimal(double number, int decimals) { writer.AddDouble(Rounded(number, decimals)); }
  void AddText(std::string_view text) { writer.AddText(text); }
  void AddBoolean(bool value) { writer.AddBoolean(value); }
  void AddEmpty() { writer.AddNull(); }
  void AddOptional(const std::optional<uint32_t>& number) {
    number ? writer.AddInteger(*number) : writer.AddNull();
  }
  void Add(const VcpuCells& cells) {
    writer.AddText(cells.vm);
    writer.AddInteger(cells.vm_number);
    AddOptional(cells.vm_pid);
    cells.vm_uuid ? writer.AddText(*cells.vm_uuid) : writer.AddNull();
    writer.AddInteger(cells.epoch);
    writer.AddInteger(cells.vcpu);
    AddOptional(cells.tid);
    AddOptional(cells.kvm_id);
  }
};

// An IntervalTable as a Parquet file: the columns and values of CsvExport, numbers as numbers, null
// where a cell of the CSV is empty. docs/parquet.md lists types and the keys of the file's
// metadata. Memory: one row group.
class ParquetExport final : public Exporter {
 public:
  // `version` is that of this program. Without a sink entries have no row until BeginFile: they
  // only begin intervals.
  ParquetExport(Sink sink, std::string version)
      : sink_(std::move(sink)), version_(std::move(version)) {}

  // Begins another file for the entries that follow, after Finish of the one before. Rows of all
  // files are those that one file would have; columns are those of the sets of each. Without a sink
  // as above.
  void BeginFile(Sink sink);
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

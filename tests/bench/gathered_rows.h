#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/export/interval_table.h"
#include "monitor/export/parquet.h"
#include "monitor/parquet/writer.h"

namespace vcpulse::bench {

// The rows of a table in memory, so that writing them can be measured without reading a timeline.
// Filled as ParquetExport fills its writer.
class GatheredRows {
 public:
  explicit GatheredRows(std::vector<parquet::Column> schema) : schema_(std::move(schema)) {}

  const std::vector<parquet::Column>& schema() const { return schema_; }
  size_t rows() const { return values_.size() / schema_.size(); }

  void AddInteger(int64_t value) { Add(Kind::kInteger, static_cast<uint64_t>(value)); }
  void AddDouble(double value) { Add(Kind::kDouble, std::bit_cast<uint64_t>(value)); }
  void AddBoolean(bool value) { Add(Kind::kBoolean, value ? 1 : 0); }
  void AddNull() { Add(Kind::kNull, 0); }
  void AddText(std::string_view text) {
    const auto [found, is_new] = texts_.try_emplace(std::string(text), names_.size());
    if (is_new) names_.push_back(found->first);
    Add(Kind::kText, found->second);
  }

  // Hands all of them to a writer of their schema.
  absl::Status WriteTo(parquet::Writer& writer) const {
    const size_t columns = schema_.size();
    for (size_t i = 0; i < values_.size(); ++i) {
      switch (kinds_[i]) {
        case Kind::kInteger:
          writer.AddInteger(static_cast<int64_t>(values_[i]));
          break;
        case Kind::kDouble:
          writer.AddDouble(std::bit_cast<double>(values_[i]));
          break;
        case Kind::kBoolean:
          writer.AddBoolean(values_[i] != 0);
          break;
        case Kind::kText:
          writer.AddText(names_[values_[i]]);
          break;
        case Kind::kNull:
          writer.AddNull();
      }
      if ((i + 1) % columns != 0) continue;
      if (absl::Status status = writer.EndRow(); !status.ok()) return status;
    }
    return writer.Finish();
  }

 private:
  enum class Kind : uint8_t { kInteger, kDouble, kBoolean, kText, kNull };

  void Add(Kind kind, uint64_t value) {
    kinds_.push_back(kind);
    values_.push_back(value);
  }

  std::vector<parquet::Column> schema_;
  std::vector<Kind> kinds_;  // a row after the other
  std::vector<uint64_t> values_;
  std::map<std::string, uint64_t, std::less<>> texts_;
  std::vector<std::string> names_;
};

// The rows of a timeline, which `read` hands to the function that it is given, entry by entry, and
// whose first entries are the sets of its VMs. Null where it cannot be read.
template <typename Read>
std::unique_ptr<GatheredRows> GatherRows(const Read& read) {
  exporting::IntervalTable table;
  std::unique_ptr<GatheredRows> rows;
  const absl::Status status = read([&](const timeline::Entry& entry) {
    return table.Add(entry, [&](const metric::Interval& interval) {
      if (rows == nullptr) {
        rows = std::make_unique<GatheredRows>(exporting::ParquetSchema(table.Columns()));
      }
      exporting::ParquetRow<GatheredRows> row{*rows};
      table.PutRow(interval, row);
      return absl::OkStatus();
    });
  });
  return status.ok() ? std::move(rows) : nullptr;
}

}  // namespace vcpulse::bench

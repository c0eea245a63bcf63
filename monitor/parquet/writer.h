#pragma once

// monitor/parquet writes Apache Parquet files of flat schemas: rows of numbers, booleans, texts and
// instants, each required or optional. It knows nothing of timelines and reads nothing. By part of
// the format's specification (apache/parquet-format):
//   writer         the file: magic number, row groups, footer (README.md)
//   column_writer  a column chunk: pages of version 1 compressed by zstd, statistics
//   dictionary     the entries of dictionary pages
//   encodings      PLAIN, RLE, RLE_DICTIONARY, DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT
//   (Encodings.md) metadata       page headers and the footer's structs (parquet.thrift)
//   thrift_compact Thrift's compact protocol

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/parquet/column_writer.h"
#include "monitor/parquet/metadata.h"

namespace vcpulse::parquet {

// Takes the bytes of the file, in their order.
using Sink = std::function<absl::Status(std::string_view)>;

struct WriterOptions {
  size_t rows_per_group = 122'880;  // what DuckDB writes, and shares among threads when it reads
  int zstd_level = 3;
  std::string created_by = "vcpulse";  // "NAME version VERSION"
};

// Writes one file. Memory: one row group, not encoded. One thread.
//
//   auto writer = Writer::Create({{.name = "vcpu", .optional = false}, {.name = "ipc", .type =
//       Type::kDouble}}, sink);
//   for each row: (*writer)->AddInteger(0); (*writer)->AddNull(); status = (*writer)->EndRow();
//   status = (*writer)->Finish();
class Writer {
 public:
  // Errors: InvalidArgument for a schema without columns, and for a name that is empty or another
  // column's.
  static absl::StatusOr<std::unique_ptr<Writer>> Create(std::vector<Column> schema, Sink sink,
                                                        WriterOptions options = {});

  // The value of the next column of this row: AddInteger for kInt32, kInt64 and kTimestampNs, each
  // other one for its type. A text is valid UTF-8. Throws std::logic_error for another type, a
  // null of a required column and a value behind the last column.
  void AddInteger(int64_t value) {
    Next(Values::kIntegers).AddNumber(static_cast<uint64_t>(value));
  }
  void AddDouble(double value) { Next(Values::kDoubles).AddNumber(std::bit_cast<uint64_t>(value)); }
  void AddBoolean(bool value) { Next(Values::kBooleans).AddNumber(value ? 1 : 0); }
  void AddText(std::string_view value) { Next(Values::kTexts).AddText(value); }
  void AddNull();

  // After the last column of a row. Errors: those of the sink, when a row group is full. Throws
  // std::logic_error where a column has no value.
  absl::Status EndRow();

  // A key of the file's metadata; the last value of a key holds. Before Finish.
  void SetMetadata(std::string_view key, std::string_view value);

  // After the last row: writes the rows that wait, and the footer. Without it, what the sink was
  // given is not a Parquet file. Errors: those of the sink.
  absl::Status Finish();

  uint64_t rows() const { return rows_; }

 private:
  Writer(std::vector<Column> schema, Sink sink, WriterOptions options);

  enum class Values : uint8_t { kIntegers, kDoubles, kBooleans, kTexts };
  static Values ValuesOf(Type type);

  ColumnWriter& Next(Values values) {
    if (next_ >= values_.size() || values_[next_] != values) ThrowMisfit();
    return columns_[next_++];
  }
  [[noreturn]] void ThrowMisfit() const;
  absl::Status WriteGroup();
  absl::Status Hand(std::string_view bytes);

  std::vector<Column> schema_;
  Sink sink_;
  WriterOptions options_;
  EncodingTools tools_;
  std::vector<ColumnWriter> columns_;
  std::vector<Values> values_;  // what each takes
  size_t next_ = 0;             // column
  size_t rows_in_group_ = 0;
  uint64_t rows_ = 0;
  int64_t offset_ = 0;  // bytes that the sink was given
  std::vector<RowGroupMetadata> groups_;
  std::vector<KeyValue> metadata_;
  std::string chunk_;
};

}  // namespace vcpulse::parquet

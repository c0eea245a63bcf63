#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vcpulse::parquet {

// What a column holds. Each is one physical type of the format and, but for the first four, a
// logical one.
enum class Type : uint8_t {
  kBoolean,
  kInt32,
  kInt64,
  kDouble,
  kString,       // UTF-8
  kTimestampNs,  // ns since 1970, UTC
};

struct Column {
  std::string name;
  Type type = Type::kInt64;
  bool optional = true;  // else each row has a value
};

// Key and value, as they stand in the file's metadata.
using KeyValue = std::pair<std::string, std::string>;

// Encoding of parquet.thrift, by its numbers there.
enum class Encoding : uint8_t {
  kPlain = 0,
  kRle = 3,
  kDeltaBinaryPacked = 5,
  kRleDictionary = 8,
  kByteStreamSplit = 9,
};

// Statistics of a column chunk. `min` and `max` are PLAIN values (a string without its length),
// there are both or none.
struct Statistics {
  int64_t null_count = 0;
  std::optional<std::string> min;
  std::optional<std::string> max;
};

// One column of one row group, as the footer describes it. Offsets are bytes from the start of the
// file, sizes include the headers of pages.
struct ChunkMetadata {
  std::vector<Encoding> encodings;
  int64_t values = 0;  // nulls included
  int64_t plain_bytes = 0;
  int64_t compressed_bytes = 0;
  int64_t data_page_offset = 0;
  std::optional<int64_t> dictionary_page_offset;
  Statistics statistics;
};

struct RowGroupMetadata {
  int64_t rows = 0;
  int64_t offset = 0;
  std::vector<ChunkMetadata> columns;  // in the order of the schema
};

// PageHeader of a data page (version 1: levels and values are compressed together). `values` counts
// nulls too.
std::string DataPageHeader(size_t values, Encoding encoding, size_t plain_bytes,
                           size_t compressed_bytes);
// And of a dictionary page, whose values are PLAIN.
std::string DictionaryPageHeader(size_t values, size_t plain_bytes, size_t compressed_bytes);

// FileMetaData, without its length and the magic number that follow it in a file.
std::string FileMetadata(const std::vector<Column>& schema,
                         const std::vector<RowGroupMetadata>& row_groups,
                         const std::vector<KeyValue>& metadata, std::string_view created_by);

}  // namespace vcpulse::parquet

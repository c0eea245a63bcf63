#include "monitor/parquet/metadata.h"

#include "monitor/parquet/thrift_compact.h"

// Structs, fields and numbers are those of parquet.thrift; ids stand as numbers, with the field's
// name behind them.

namespace vcpulse::parquet {
namespace {

constexpr int32_t kFormatVersion = 2;
constexpr int32_t kZstd = 6;  // CompressionCodec
constexpr int32_t kDataPage = 0;
constexpr int32_t kDictionaryPage = 2;
constexpr int32_t kRequired = 0;
constexpr int32_t kOptional = 1;
constexpr int32_t kUtf8 = 0;  // ConvertedType

int32_t PhysicalType(Type type) {
  switch (type) {
    case Type::kBoolean:
      return 0;
    case Type::kInt32:
      return 1;
    case Type::kInt64:
    case Type::kTimestampNs:
      return 2;
    case Type::kDouble:
      return 5;
    case Type::kString:
      return 6;  // BYTE_ARRAY
  }
  return 0;
}

int32_t Number(Encoding encoding) { return static_cast<int32_t>(encoding); }

std::string PageHeader(int32_t type, size_t plain_bytes, size_t compressed_bytes,
                       int16_t of_type_id, size_t values, Encoding encoding) {
  ThriftCompact out;
  out.BeginStruct();
  out.I32(1, type);
  out.I32(2, static_cast<int32_t>(plain_bytes));
  out.I32(3, static_cast<int32_t>(compressed_bytes));
  out.BeginStruct(of_type_id);
  out.I32(1, static_cast<int32_t>(values));
  out.I32(2, Number(encoding));
  if (type == kDataPage) {
    out.I32(3, Number(Encoding::kRle));  // definition_level_encoding
    out.I32(4, Number(Encoding::kRle));  // repetition_level_encoding
  }
  out.EndStruct();
  out.EndStruct();
  return std::move(out).Take();
}

void AddSchemaElement(ThriftCompact& out, const Column& column) {
  out.BeginStruct();
  out.I32(1, PhysicalType(column.type));
  out.I32(3, column.optional ? kOptional : kRequired);
  out.Binary(4, column.name);
  if (column.type == Type::kString) {
    out.I32(6, kUtf8);
    out.BeginStruct(10);  // logicalType
    out.BeginStruct(1);   // STRING
    out.EndStruct();
    out.EndStruct();
  } else if (column.type == Type::kTimestampNs) {
    out.BeginStruct(10);
    out.BeginStruct(8);  // TIMESTAMP
    out.Bool(1, true);   // isAdjustedToUTC
    out.BeginStruct(2);  // unit
    out.BeginStruct(3);  // NANOS
    out.EndStruct();
    out.EndStruct();
    out.EndStruct();
    out.EndStruct();
  }
  out.EndStruct();
}

void AddSchema(ThriftCompact& out, const std::vector<Column>& schema) {
  out.BeginStructs(2, schema.size() + 1);
  out.BeginStruct();
  out.Binary(4, "schema");
  out.I32(5, static_cast<int32_t>(schema.size()));
  out.EndStruct();
  for (const Column& column : schema) AddSchemaElement(out, column);
}

void AddStatistics(ThriftCompact& out, const Statistics& statistics) {
  out.BeginStruct(12);
  out.I64(3, statistics.null_count);
  if (statistics.min && statistics.max) {
    out.Binary(5, *statistics.max);
    out.Binary(6, *statistics.min);
    out.Bool(7, true);  // is_max_value_exact
    out.Bool(8, true);  // is_min_value_exact
  }
  out.EndStruct();
}

void AddChunk(ThriftCompact& out, const Column& column, const ChunkMetadata& chunk) {
  out.BeginStruct();
  out.I64(2, 0);       // file_offset: the metadata stands here alone
  out.BeginStruct(3);  // meta_data
  out.I32(1, PhysicalType(column.type));
  out.BeginI32s(2, chunk.encodings.size());
  for (const Encoding encoding : chunk.encodings) out.I32Element(Number(encoding));
  out.BeginBinaries(3, 1);
  out.BinaryElement(column.name);
  out.I32(4, kZstd);
  out.I64(5, chunk.values);
  out.I64(6, chunk.plain_bytes);
  out.I64(7, chunk.compressed_bytes);
  out.I64(9, chunk.data_page_offset);
  if (chunk.dictionary_page_offset) out.I64(11, *chunk.dictionary_page_offset);
  AddStatistics(out, chunk.statistics);
  out.EndStruct();
  out.EndStruct();
}

void AddRowGroup(ThriftCompact& out, const std::vector<Column>& schema,
                 const RowGroupMetadata& group) {
  int64_t plain_bytes = 0;
  int64_t compressed_bytes = 0;
  out.BeginStruct();
  out.BeginStructs(1, group.columns.size());
  for (size_t i = 0; i < group.columns.size(); ++i) {
    AddChunk(out, schema[i], group.columns[i]);
    plain_bytes += group.columns[i].plain_bytes;
    compressed_bytes += group.columns[i].compressed_bytes;
  }
  out.I64(2, plain_bytes);  // total_byte_size
  out.I64(3, group.rows);
  out.I64(5, group.offset);
  out.I64(6, compressed_bytes);
  out.EndStruct();
}

}  // namespace

std::string DataPageHeader(size_t values, Encoding encoding, size_t plain_bytes,
                           size_t compressed_bytes) {
  return PageHeader(kDataPage, plain_bytes, compressed_bytes, 5, values, encoding);
}

std::string DictionaryPageHeader(size_t values, size_t plain_bytes, size_t compressed_bytes) {
  return PageHeader(kDictionaryPage, plain_bytes, compressed_bytes, 7, values, Encoding::kPlain);
}

std::string FileMetadata(const std::vector<Column>& schema,
                         const std::vector<RowGroupMetadata>& row_groups,
                         const std::vector<KeyValue>& metadata, std::string_view created_by) {
  int64_t rows = 0;
  for (const RowGroupMetadata& group : row_groups) rows += group.rows;
  ThriftCompact out;
  out.BeginStruct();
  out.I32(1, kFormatVersion);
  AddSchema(out, schema);
  out.I64(3, rows);
  out.BeginStructs(4, row_groups.size());
  for (const RowGroupMetadata& group : row_groups) AddRowGroup(out, schema, group);
  if (!metadata.empty()) {
    out.BeginStructs(5, metadata.size());
    for (const auto& [key, value] : metadata) {
      out.BeginStruct();
      out.Binary(1, key);
      out.Binary(2, value);
      out.EndStruct();
    }
  }
  out.Binary(6, created_by);
  // column_orders: without them readers ignore min and max of strings.
  out.BeginStructs(7, schema.size());
  for (size_t i = 0; i < schema.size(); ++i) {
    out.BeginStruct();
    out.BeginStruct(1);  // TYPE_ORDER
    out.EndStruct();
    out.EndStruct();
  }
  out.EndStruct();
  return std::move(out).Take();
}

}  // namespace vcpulse::parquet

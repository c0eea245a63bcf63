#include "monitor/parquet/writer.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <source_location>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/core/check.h"

namespace vcpulse::parquet {
namespace {

constexpr std::string_view kMagic = "PAR1";
// A row group ends early where its texts take so much.
constexpr size_t kMostTextBytes = size_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(std::vector<Column> schema, Sink sink,
                                                       WriterOptions options) {
  if (schema.empty()) return absl::InvalidArgumentError("a Parquet file needs a column");
  std::set<std::string_view> names;
  for (const Column& column : schema) {
    if (column.name.empty()) {
      return absl::InvalidArgumentError("a column of a Parquet file needs a name");
    }
    if (!names.insert(column.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two columns have the name ", Quoted(column.name)));
    }
  }
  options.rows_per_group = std::max<size_t>(1, options.rows_per_group);
  return std::unique_ptr<Writer>(
      new Writer(std::move(schema), std::move(sink), std::move(options)));
}

Writer::Writer(std::vector<Column> schema, Sink sink, WriterOptions options)
    : schema_(std::move(schema)),
      sink_(std::move(sink)),
      options_(std::move(options)),
      tools_(options_.zstd_level) {
  columns_.reserve(schema_.size());
  for (const Column& column : schema_) {
    columns_.emplace_back(column);
    values_.push_back(ValuesOf(column.type));
  }
}

Writer::Values Writer::ValuesOf(Type type) {
  switch (type) {
    case Type::kDouble:
      return Values::kDoubles;
    case Type::kBoolean:
      return Values::kBooleans;
    case Type::kString:
      return Values::kTexts;
    default:
      return Values::kIntegers;
  }
}

void Writer::ThrowMisfit() const {
  VCPULSE_CHECK(next_ < columns_.size(), "a value behind the last column");
  ThrowBug(absl::StrCat("a value of another type in column ", columns_[next_].column().name),
           std::source_location::current());
}

void Writer::AddNull() {
  VCPULSE_CHECK(next_ < columns_.size(), "a value behind the last column");
  ColumnWriter& column = columns_[next_++];
  VCPULSE_CHECK(column.column().optional,
                absl::StrCat("a null in the required column ", column.column().name));
  column.AddNull();
}

absl::Status Writer::EndRow() {
  VCPULSE_CHECK(next_ == columns_.size(),
                absl::StrCat("a row without a value of column ", columns_[next_].column().name));
  next_ = 0;
  ++rows_;
  ++rows_in_group_;
  size_t text_bytes = 0;
  if (rows_in_group_ % 64 == 0) {
    for (const ColumnWriter& column : columns_) text_bytes += column.text_bytes();
  }
  if (rows_in_group_ < options_.rows_per_group && text_bytes < kMostTextBytes) {
    return absl::OkStatus();
  }
  return WriteGroup();
}

void Writer::SetMetadata(std::string_view key, std::string_view value) {
  const auto known = std::ranges::find(metadata_, key, &KeyValue::first);
  if (known == metadata_.end()) {
    metadata_.emplace_back(key, value);
  } else {
    known->second = value;
  }
}

absl::Status Writer::Hand(std::string_view bytes) {
  offset_ += static_cast<int64_t>(bytes.size());
  return sink_(bytes);
}

absl::Status Writer::WriteGroup() {
  if (offset_ == 0) {
    if (absl::Status status = Hand(kMagic); !status.ok()) return status;
  }
  RowGroupMetadata group;
  group.rows = static_cast<int64_t>(rows_in_group_);
  group.offset = offset_;
  for (ColumnWriter& column : columns_) {
    chunk_.clear();
    ChunkMetadata metadata = column.Write(tools_, chunk_);
    metadata.data_page_offset += offset_;
    if (metadata.dictionary_page_offset) *metadata.dictionary_page_offset += offset_;
    group.columns.push_back(std::move(metadata));
    if (absl::Status status = Hand(chunk_); !status.ok()) return status;
  }
  groups_.push_back(std::move(group));
  rows_in_group_ = 0;
  return absl::OkStatus();
}

absl::Status Writer::Finish() {
  if (rows_in_group_ > 0) {
    if (absl::Status status = WriteGroup(); !status.ok()) return status;
  }
  std::string end(offset_ == 0 ? kMagic : std::string_view());
  const std::string footer = FileMetadata(schema_, groups_, metadata_, options_.created_by);
  end += footer;
  const auto bytes = static_cast<uint32_t>(footer.size());
  char raw[sizeof(bytes)];
  std::memcpy(raw, &bytes, sizeof(bytes));
  end.append(raw, sizeof(raw));
  end += kMagic;
  return Hand(end);
}

}  // namespace vcpulse::parquet

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/parquet/dictionary.h"
#include "monitor/parquet/metadata.h"

namespace vcpulse::parquet {

// One zstd context, used for page after page. One thread.
class PageCompressor {
 public:
  explicit PageCompressor(int level);
  ~PageCompressor();
  PageCompressor(const PageCompressor&) = delete;
  PageCompressor& operator=(const PageCompressor&) = delete;

  // A frame of `plain`, valid until the next call.
  std::string_view Compress(std::string_view plain);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::string compressed_;
};

// What the columns of a file share while one after the other is encoded.
struct EncodingTools {
  explicit EncodingTools(int zstd_level) : compressor(zstd_level) {}

  PageCompressor compressor;
  NumberDictionary dictionary;
  std::string page;
  std::vector<uint8_t> levels;
};

// Gathers the values of one column for a row group, then makes a column chunk of them: an optional
// dictionary page, and data pages of at most about 1 MiB. It takes the encoding that makes a sample
// of the values smallest after compression, and tries again every few row groups. One thread.
class ColumnWriter {
 public:
  explicit ColumnWriter(Column column) : column_(std::move(column)) {}

  const Column& column() const { return column_; }
  size_t rows() const { return numbers_.size() + nulls_.size(); }
  size_t text_bytes() const { return texts_.bytes(); }

  // The value of the next row. A number comes as 64 bits: signed ones extended, a double as its
  // bits, a boolean as 0 or 1.
  void AddNumber(uint64_t number) { numbers_.push_back(number); }
  void AddText(std::string_view text) { numbers_.push_back(texts_.IndexOf(text)); }
  void AddNull() { nulls_.push_back(static_cast<uint32_t>(rows())); }

  // Appends the chunk of all rows so far to `out` and forgets them. The offsets of what it returns
  // are those in `out`.
  ChunkMetadata Write(EncodingTools& tools, std::string& out);

 private:
  struct Chunk;  // what is being written

  Encoding Choose(EncodingTools& tools);
  Statistics FindStatistics(std::span<const uint64_t> numbers) const;
  void AppendEncoded(std::string& page, Encoding encoding, std::span<const uint64_t> numbers) const;
  void AppendLevels(std::string& page, std::span<const uint8_t> levels) const;
  void WriteDictionary(const EncodingTools& tools, Chunk& chunk);
  void WriteTexts(EncodingTools& tools, Chunk& chunk);

  Column column_;
  std::vector<uint64_t> numbers_;  // of texts: indices in texts_
  std::vector<uint32_t> nulls_;    // the rows without a value
  TextDictionary texts_;
  std::optional<Encoding> choice_;
  int groups_to_next_choice_ = 0;
};

}  // namespace vcpulse::parquet

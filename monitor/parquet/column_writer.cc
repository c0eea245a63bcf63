#include "monitor/parquet/column_writer.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "monitor/core/check.h"
#include "monitor/parquet/encodings.h"

namespace vcpulse::parquet {
namespace {

constexpr size_t kPageBytes = size_t{1} << 20;  // of texts; numbers of a row group are less
constexpr size_t kSample = 8192;                // numbers that encodings are tried on
constexpr int kGroupsPerChoice = 8;
// So few different numbers are best in a dictionary, whatever else they are.
constexpr size_t kSurelyDictionary = 256;
constexpr size_t kMostDictionaryBytes = size_t{1} << 20;  // of texts
constexpr size_t kLongestBound_bytes = 64;                // of a text in statistics

size_t BytesOf(Type type) { return type == Type::kInt32 ? 4 : 8; }

// At least 1: readers differ on a width of 0.
int WidthOf(size_t entries) {
  return std::max(1, static_cast<int>(std::bit_width(entries - std::min<size_t>(entries, 1))));
}

std::string PlainValue(uint64_t number, size_t bytes) {
  std::string plain;
  AppendPlain(plain, std::span(&number, 1), bytes);
  return plain;
}

template <typename Number>
std::pair<Number, Number> MinAndMax(std::span<const uint64_t> numbers) {
  auto least = std::bit_cast<Number>(numbers[0]);
  Number most = least;
  for (const uint64_t bits : numbers) {
    const auto number = std::bit_cast<Number>(bits);
    least = std::min(least, number);
    most = std::max(most, number);
  }
  return {least, most};
}

void AddBoundsOfDoubles(std::span<const uint64_t> numbers, Statistics& statistics) {
  // Readers sort NaN in different places, so bounds that leave it out may hide rows that match.
  for (const uint64_t bits : numbers) {
    if (std::isnan(std::bit_cast<double>(bits))) return;
  }
  auto [least, most] = MinAndMax<double>(numbers);
  // parquet.thrift: a zero stands for both zeros.
  if (least == 0) least = -0.0;
  if (most == 0) most = 0.0;
  statistics.min = PlainValue(std::bit_cast<uint64_t>(least), 8);
  statistics.max = PlainValue(std::bit_cast<uint64_t>(most), 8);
}

}  // namespace

struct PageCompressor::Context {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
};

PageCompressor::PageCompressor(int level) : context_(std::make_unique<Context>()) {
  ZSTD_CCtx_setParameter(context_->zstd.get(), ZSTD_c_compressionLevel, level);
}

PageCompressor::~PageCompressor() = default;

std::string_view PageCompressor::Compress(std::string_view plain) {
  const size_t bound = ZSTD_compressBound(plain.size());
  if (compressed_.size() < bound) compressed_.resize(bound);
  const size_t bytes = ZSTD_compress2(context_->zstd.get(), compressed_.data(), compressed_.size(),
                                      plain.data(), plain.size());
  VCPULSE_CHECK(ZSTD_isError(bytes) == 0, ZSTD_getErrorName(bytes));
  return std::string_view(compressed_).substr(0, bytes);
}

struct ColumnWriter::Chunk {
  EncodingTools& tools;
  std::string& out;
  size_t begin;
  ChunkMetadata metadata;

  void AddHeader(const std::string& header, size_t plain_bytes) {
    out += header;
    metadata.plain_bytes += static_cast<int64_t>(header.size() + plain_bytes);
  }
  // tools.page, of `values` with nulls.
  void AddDataPage(size_t values, Encoding encoding) {
    const std::string_view compressed = tools.compressor.Compress(tools.page);
    AddHeader(DataPageHeader(values, encoding, tools.page.size(), compressed.size()),
              tools.page.size());
    out += compressed;
    tools.page.clear();
  }
  // tools.page, of `values`; before any data page.
  void AddDictionaryPage(size_t values) {
    metadata.dictionary_page_offset = static_cast<int64_t>(out.size());
    const std::string_view compressed = tools.compressor.Compress(tools.page);
    AddHeader(DictionaryPageHeader(values, tools.page.size(), compressed.size()),
              tools.page.size());
    out += compressed;
    tools.page.clear();
    metadata.data_page_offset = static_cast<int64_t>(out.size());
  }
};

void ColumnWriter::AppendEncoded(std::string& page, Encoding encoding,
                                 std::span<const uint64_t> numbers) const {
  if (encoding == Encoding::kByteStreamSplit) {
    AppendByteStreamSplit(page, numbers);
  } else if (encoding == Encoding::kDeltaBinaryPacked && column_.type == Type::kInt32) {
    AppendDelta32(page, numbers);
  } else if (encoding == Encoding::kDeltaBinaryPacked) {
    AppendDelta64(page, numbers);
  } else if (column_.type == Type::kBoolean) {
    AppendPlainBits(page, numbers);
  } else {
    AppendPlain(page, numbers, BytesOf(column_.type));
  }
}

Encoding ColumnWriter::Choose(EncodingTools& tools) {
  if (column_.type == Type::kBoolean || numbers_.empty()) return Encoding::kPlain;
  if (choice_ && groups_to_next_choice_ > 0) {
    --groups_to_next_choice_;
    if (*choice_ != Encoding::kRleDictionary || tools.dictionary.Make(numbers_)) return *choice_;
  }
  groups_to_next_choice_ = kGroupsPerChoice - 1;
  const bool has_dictionary = tools.dictionary.Make(numbers_);
  const std::span<const uint64_t> entries = tools.dictionary.entries();
  if (has_dictionary && entries.size() <= kSurelyDictionary) {
    choice_ = Encoding::kRleDictionary;
    return *choice_;
  }
  const size_t sampled = std::min(kSample, numbers_.size());
  const size_t from = (numbers_.size() - sampled) / 2;
  const std::span sample = std::span<const uint64_t>(numbers_).subspan(from, sampled);
  const double scale = static_cast<double>(numbers_.size()) / static_cast<double>(sampled);
  const auto compressed_size = [&tools] {
    const auto bytes = static_cast<double>(tools.compressor.Compress(tools.page).size());
    tools.page.clear();
    return bytes;
  };
  std::optional<double> least;
  const auto offer = [&](Encoding encoding, double bytes) {
    if (least && *least <= bytes) return;
    least = bytes;
    choice_ = encoding;
  };
  const Encoding other =
      column_.type == Type::kDouble ? Encoding::kByteStreamSplit : Encoding::kDeltaBinaryPacked;
  for (const Encoding encoding : {Encoding::kPlain, other}) {
    AppendEncoded(tools.page, encoding, sample);
    offer(encoding, scale * compressed_size());
  }
  if (has_dictionary) {
    AppendPlain(tools.page, entries, BytesOf(column_.type));
    const double bytes = compressed_size();
    AppendRleBitPacked(tools.page, tools.dictionary.indices().subspan(from, sampled),
                       WidthOf(entries.size()));
    offer(Encoding::kRleDictionary, bytes + scale * compressed_size());
  }
  return *choice_;
}

Statistics ColumnWriter::FindStatistics(std::span<const uint64_t> numbers) const {
  Statistics statistics;
  statistics.null_count = static_cast<int64_t>(nulls_.size());
  if (numbers.empty()) return statistics;
  if (column_.type == Type::kDouble) {
    AddBoundsOfDoubles(numbers, statistics);
  } else if (column_.type == Type::kString) {
    const auto [least, most] = std::ranges::minmax(texts_.texts());
    if (std::max(least.size(), most.size()) > kLongestBound_bytes) return statistics;
    statistics.min = least;
    statistics.max = most;
  } else {
    const auto [least, most] = MinAndMax<int64_t>(numbers);
    const size_t bytes = column_.type == Type::kBoolean ? 1 : BytesOf(column_.type);
    statistics.min = PlainValue(static_cast<uint64_t>(least), bytes);
    statistics.max = PlainValue(static_cast<uint64_t>(most), bytes);
  }
  return statistics;
}

void ColumnWriter::AppendLevels(std::string& page, std::span<const uint8_t> levels) const {
  if (!column_.optional) return;
  const size_t begin = page.size();
  page.append(sizeof(uint32_t), '\0');
  AppendRleBitPacked(page, levels, 1);
  const auto bytes = static_cast<uint32_t>(page.size() - begin - sizeof(uint32_t));
  std::memcpy(page.data() + begin, &bytes, sizeof(bytes));
}

void ColumnWriter::WriteDictionary(const EncodingTools& tools, Chunk& chunk) {
  std::string& page = chunk.tools.page;
  size_t entries = tools.dictionary.entries().size();
  std::vector<uint32_t> of_texts;
  std::span<const uint32_t> indices = tools.dictionary.indices();
  if (column_.type == Type::kString) {
    entries = texts_.texts().size();
    for (const std::string& text : texts_.texts()) AppendPlain(page, text);
    of_texts.assign(numbers_.begin(), numbers_.end());
    indices = of_texts;
  } else {
    AppendPlain(page, tools.dictionary.entries(), BytesOf(column_.type));
  }
  chunk.AddDictionaryPage(entries);
  AppendLevels(page, tools.levels);
  const int width = WidthOf(entries);
  page.push_back(static_cast<char>(width));
  AppendRleBitPacked(page, indices, width);
  chunk.AddDataPage(rows(), Encoding::kRleDictionary);
  chunk.metadata.encodings = {Encoding::kPlain, Encoding::kRle, Encoding::kRleDictionary};
}

// PLAIN, a page after the other: they may be much longer than numbers.
void ColumnWriter::WriteTexts(EncodingTools& tools, Chunk& chunk) {
  const std::span<const uint8_t> levels = tools.levels;
  size_t row = 0;
  size_t value = 0;
  while (row < rows()) {
    const size_t first_row = row;
    const size_t first_value = value;
    for (size_t bytes = 0; row < rows() && bytes < kPageBytes; ++row) {
      if (levels[row] == 0) continue;
      bytes += sizeof(uint32_t) + texts_.texts()[numbers_[value++]].size();
    }
    AppendLevels(tools.page, levels.subspan(first_row, row - first_row));
    for (size_t i = first_value; i < value; ++i) {
      AppendPlain(tools.page, texts_.texts()[numbers_[i]]);
    }
    chunk.AddDataPage(row - first_row, Encoding::kPlain);
  }
  chunk.metadata.encodings = {Encoding::kPlain, Encoding::kRle};
}

ChunkMetadata ColumnWriter::Write(EncodingTools& tools, std::string& out) {
  tools.levels.assign(rows(), 1);
  for (const uint32_t row : nulls_) tools.levels[row] = 0;
  Chunk chunk{.tools = tools, .out = out, .begin = out.size(), .metadata = {}};
  chunk.metadata.values = static_cast<int64_t>(rows());
  chunk.metadata.data_page_offset = static_cast<int64_t>(out.size());
  if (column_.type == Type::kString) {
    chunk.metadata.statistics = FindStatistics(numbers_);
    const bool few = texts_.bytes() <= kMostDictionaryBytes &&
                     texts_.texts().size() <= (numbers_.size() + 1) / 2;
    if (few && !numbers_.empty()) {
      WriteDictionary(tools, chunk);
    } else {
      WriteTexts(tools, chunk);
    }
  } else {
    const Encoding encoding = Choose(tools);
    // Each entry of a dictionary is the number of a row.
    const bool dictionary = encoding == Encoding::kRleDictionary;
    chunk.metadata.statistics = FindStatistics(dictionary ? tools.dictionary.entries()
                                                          : std::span<const uint64_t>(numbers_));
    if (dictionary) {
      WriteDictionary(tools, chunk);
    } else {
      AppendLevels(tools.page, tools.levels);
      AppendEncoded(tools.page, encoding, numbers_);
      chunk.AddDataPage(rows(), encoding);
      chunk.metadata.encodings = {encoding, Encoding::kRle};
    }
  }
  chunk.metadata.compressed_bytes = static_cast<int64_t>(out.size() - chunk.begin);
  numbers_.clear();
  nulls_.clear();
  texts_.Clear();
  return std::move(chunk.metadata);
}

}  // namespace vcpulse::parquet

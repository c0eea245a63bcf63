#include "monitor/parquet/column_writer.h"

#include <zstd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitor/parquet/encodings.h"

namespace vcpulse::parquet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

struct Written {
  ChunkMetadata metadata;
  std::string bytes;
};

Written Write(ColumnWriter& column) {
  EncodingTools tools(3);
  Written written;
  written.bytes = "before";
  written.metadata = column.Write(tools, written.bytes);
  return written;
}

std::string Plain(uint64_t number, size_t bytes = 8) {
  std::string plain;
  AppendPlain(plain, std::span(&number, 1), bytes);
  return plain;
}

std::string Plain(double number) { return Plain(std::bit_cast<uint64_t>(number)); }

Statistics StatisticsOf(Type type, const std::vector<std::optional<uint64_t>>& values) {
  ColumnWriter column({.name = "c", .type = type});
  for (const auto& value : values) value ? column.AddNumber(*value) : column.AddNull();
  return Write(column).metadata.statistics;
}

Statistics StatisticsOf(const std::vector<double>& values) {
  ColumnWriter column({.name = "c", .type = Type::kDouble});
  for (const double value : values) column.AddNumber(std::bit_cast<uint64_t>(value));
  return Write(column).metadata.statistics;
}

Statistics StatisticsOf(const std::vector<std::string>& values) {
  ColumnWriter column({.name = "c", .type = Type::kString});
  for (const std::string& value : values) column.AddText(value);
  return Write(column).metadata.statistics;
}

TEST(Statistics, OfIntegersAreSigned) {
  const Statistics found =
      StatisticsOf(Type::kInt64, {3, std::nullopt, static_cast<uint64_t>(-2), 7, std::nullopt});
  EXPECT_EQ(found.null_count, 2);
  EXPECT_EQ(found.min, Plain(static_cast<uint64_t>(-2)));
  EXPECT_EQ(found.max, Plain(uint64_t{7}));
  const Statistics narrow = StatisticsOf(Type::kInt32, {3, static_cast<uint64_t>(-2)});
  EXPECT_EQ(narrow.min, Plain(static_cast<uint64_t>(-2), 4));
  EXPECT_EQ(narrow.max, Plain(3, 4));
  const Statistics bits = StatisticsOf(Type::kBoolean, {1, 0, 1});
  EXPECT_EQ(bits.min, Plain(uint64_t{0}, 1));
  EXPECT_EQ(bits.max, Plain(uint64_t{1}, 1));
}

TEST(Statistics, OfNullsAloneHaveNoBounds) {
  const Statistics found = StatisticsOf(Type::kInt64, {std::nullopt, std::nullopt});
  EXPECT_EQ(found.null_count, 2);
  EXPECT_EQ(found.min, std::nullopt);
  EXPECT_EQ(found.max, std::nullopt);
}

TEST(Statistics, OfDoubles) {
  const Statistics found = StatisticsOf({2.5, -1.5, 1e300});
  EXPECT_EQ(found.min, Plain(-1.5));
  EXPECT_EQ(found.max, Plain(1e300));
  // parquet.thrift: a least value of 0 is written as -0, a largest one as +0.
  EXPECT_EQ(StatisticsOf({0.0, 1.0}).min, Plain(-0.0));
  EXPECT_EQ(StatisticsOf({-1.0, -0.0}).max, Plain(0.0));
}

// DuckDB takes NaN for the largest number: a bound without it would hide it from `x > 1`.
TEST(Statistics, NaNRemovesTheBounds) {
  const Statistics found = StatisticsOf({1, std::numeric_limits<double>::quiet_NaN(), 2});
  EXPECT_EQ(found.min, std::nullopt);
  EXPECT_EQ(found.max, std::nullopt);
  EXPECT_EQ(found.null_count, 0);
}

TEST(Statistics, OfTextsAreByBytesAndNeverLong) {
  const Statistics found = StatisticsOf({"b", "é", "a", "ab", "z"});
  EXPECT_EQ(found.min, "a");
  EXPECT_EQ(found.max, "é");  // 0xC3 comes behind all of ASCII
  const Statistics longest = StatisticsOf({std::string(64, 'a'), "b"});
  EXPECT_EQ(longest.min, std::string(64, 'a'));
  const Statistics longer = StatisticsOf({std::string(65, 'a'), "b"});
  EXPECT_EQ(longer.min, std::nullopt);
  EXPECT_EQ(longer.max, std::nullopt);
}

// Those of the row group before are forgotten.
TEST(ColumnWriter, EachChunkIsOfItsOwnRows) {
  ColumnWriter column({.name = "c", .type = Type::kString});
  column.AddText("zzz");
  column.AddNull();
  EXPECT_EQ(Write(column).metadata.values, 2);
  column.AddText("a");
  const ChunkMetadata second = Write(column).metadata;
  EXPECT_EQ(second.values, 1);
  EXPECT_EQ(second.statistics.max, "a");
  EXPECT_EQ(second.statistics.null_count, 0);
}

TEST(ColumnWriter, SizesAndOffsetsAreThoseOfTheBytes) {
  ColumnWriter column({.name = "c", .type = Type::kInt64});
  for (uint64_t i = 0; i < 1000; ++i) column.AddNumber(i % 3);
  const Written written = Write(column);
  EXPECT_EQ(written.metadata.dictionary_page_offset, 6);
  EXPECT_GT(written.metadata.data_page_offset, 6);
  EXPECT_EQ(written.metadata.compressed_bytes, static_cast<int64_t>(written.bytes.size()) - 6);
  EXPECT_GT(written.metadata.plain_bytes, 24);
}

std::vector<Encoding> EncodingsOf(Type type, size_t rows, uint64_t (*value)(uint64_t row)) {
  ColumnWriter column({.name = "c", .type = type, .optional = false});
  for (uint64_t row = 0; row < rows; ++row) column.AddNumber(value(row));
  return Write(column).metadata.encodings;
}

uint64_t Mixed(uint64_t row) {
  row = (row + 1) * 0x9E3779B97F4A7C15;
  row = (row ^ row >> 30) * 0xBF58476D1CE4E5B9;
  return row ^ row >> 27;
}

TEST(ColumnWriter, TakesTheEncodingThatIsSmallest) {
  EXPECT_THAT(EncodingsOf(Type::kInt64, 50'000, [](uint64_t row) { return Mixed(row) % 200; }),
              Contains(Encoding::kRleDictionary));
  EXPECT_THAT(EncodingsOf(Type::kInt64, 50'000,
                          [](uint64_t row) { return row * 1'000'000 + Mixed(row) % 1000; }),
              ElementsAre(Encoding::kDeltaBinaryPacked, Encoding::kRle));
  EXPECT_THAT(EncodingsOf(Type::kInt64, 50'000, Mixed),
              ElementsAre(Encoding::kPlain, Encoding::kRle));
  EXPECT_THAT(
      EncodingsOf(Type::kDouble, 50'000,
                  [](uint64_t row) {
                    return std::bit_cast<uint64_t>(1 + static_cast<double>(Mixed(row)) / 1e20);
                  }),
      ElementsAre(Encoding::kByteStreamSplit, Encoding::kRle));
}

// A jump from one end to the other is 32 bits wide, as readers of int32 expect.
TEST(ColumnWriter, DeltasOfInt32HaveItsWidth) {
  ColumnWriter column({.name = "c", .type = Type::kInt32, .optional = false});
  std::vector<uint64_t> numbers;
  for (uint64_t row = 0; row < 20'000; ++row) {
    const uint64_t walk = 0x7FFF'0000 + row * 1000 + Mixed(row) % 10;
    numbers.push_back(static_cast<uint64_t>(int64_t{static_cast<int32_t>(walk)}));
    column.AddNumber(numbers.back());
  }
  const Written written = Write(column);
  ASSERT_THAT(written.metadata.encodings, Contains(Encoding::kDeltaBinaryPacked));
  std::string expected;
  AppendDelta32(expected, numbers);
  constexpr uint32_t kFrame = ZSTD_MAGICNUMBER;
  const std::string_view magic(reinterpret_cast<const char*>(&kFrame), 4);
  const size_t frame = written.bytes.find(magic);
  ASSERT_NE(frame, std::string::npos);
  std::string page(expected.size() + 1000, 'x');
  page.resize(ZSTD_decompress(page.data(), page.size(), written.bytes.data() + frame,
                              written.bytes.size() - frame));
  EXPECT_EQ(page, expected);
}

// The choice of the first chunks is kept, and dropped where its dictionary would grow too large.
TEST(ColumnWriter, ADictionaryThatGrowsIsGivenUp) {
  ColumnWriter column({.name = "c", .type = Type::kInt64});
  for (uint64_t row = 0; row < 20'000; ++row) column.AddNumber(row % 5);
  EXPECT_THAT(Write(column).metadata.encodings, Contains(Encoding::kRleDictionary));
  for (uint64_t row = 0; row < 20'000; ++row) column.AddNumber(Mixed(row));
  const ChunkMetadata second = Write(column).metadata;
  EXPECT_THAT(second.encodings, ElementsAre(Encoding::kPlain, Encoding::kRle));
  EXPECT_EQ(second.dictionary_page_offset, std::nullopt);
}

TEST(ColumnWriter, ManyLongTextsMakeSeveralPages) {
  ColumnWriter column({.name = "c", .type = Type::kString});
  std::mt19937_64 random(1);
  for (int row = 0; row < 2000; ++row) {
    std::string text(2000, 'x');
    for (char& c : text) c = static_cast<char>('a' + random() % 26);
    column.AddText(text);
  }
  const Written written = Write(column);
  EXPECT_THAT(written.metadata.encodings, ElementsAre(Encoding::kPlain, Encoding::kRle));
  constexpr uint32_t kFrame = ZSTD_MAGICNUMBER;
  const std::string_view magic(reinterpret_cast<const char*>(&kFrame), 4);
  size_t pages = 0;
  for (size_t at = 0; (at = written.bytes.find(magic, at)) != std::string::npos; ++at) ++pages;
  EXPECT_EQ(pages, 4U);
}

}  // namespace
}  // namespace vcpulse::parquet

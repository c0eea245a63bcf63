#include "monitor/parquet/writer.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace vcpulse::parquet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Sink Into(std::string& file) {
  return [&file](std::string_view bytes) {
    file += bytes;
    return absl::OkStatus();
  };
}

std::unique_ptr<Writer> NewWriter(std::vector<Column> schema, Sink sink, size_t rows_per_group) {
  auto writer =
      Writer::Create(std::move(schema), std::move(sink), {.rows_per_group = rows_per_group});
  EXPECT_TRUE(writer.ok()) << writer.status();
  return *std::move(writer);
}

std::string_view FooterOf(std::string_view file) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, file.data() + file.size() - 8, sizeof(bytes));
  EXPECT_LE(bytes + 12, file.size());
  return file.substr(file.size() - 8 - bytes, bytes);
}

TEST(Writer, AFileBeginsAndEndsWithTheMagicNumber) {
  for (const int rows : {0, 1}) {
    std::string file;
    const auto writer = NewWriter({{.name = "only"}}, Into(file), 10);
    for (int row = 0; row < rows; ++row) {
      writer->AddInteger(row);
      ASSERT_TRUE(writer->EndRow().ok());
    }
    EXPECT_EQ(file, "");
    writer->SetMetadata("key", "first");
    writer->SetMetadata("key", "second");
    ASSERT_TRUE(writer->Finish().ok());
    EXPECT_THAT(file, StartsWith("PAR1"));
    EXPECT_THAT(file, EndsWith("PAR1"));
    const std::string footer(FooterOf(file));
    EXPECT_THAT(footer, HasSubstr("only"));
    EXPECT_THAT(footer, HasSubstr("second"));
    EXPECT_THAT(footer, Not(HasSubstr("first")));
    EXPECT_EQ(writer->rows(), static_cast<uint64_t>(rows));
  }
}

// By parquet.thrift bounds of texts hold only where each column names its order.
TEST(Writer, EachColumnHasItsOrder) {
  std::string file;
  const auto writer = NewWriter({{.name = "a"}, {.name = "b"}}, Into(file), 10);
  ASSERT_TRUE(writer->Finish().ok());
  // created_by, then a list of two unions whose first field is an empty struct.
  EXPECT_THAT(std::string(FooterOf(file)), EndsWith(std::string("vcpulse"
                                                                "\x19\x2C"
                                                                "\x1C\x00\x00"
                                                                "\x1C\x00\x00"
                                                                "\x00",
                                                                16)));
}

TEST(Writer, AFullRowGroupIsHandedOver) {
  std::string file;
  const auto writer =
      NewWriter({{.name = "a"}, {.name = "b", .type = Type::kBoolean}}, Into(file), 3);
  size_t before = 0;
  for (int row = 0; row < 7; ++row) {
    writer->AddInteger(row);
    writer->AddBoolean(true);
    ASSERT_TRUE(writer->EndRow().ok());
    EXPECT_EQ(file.size() > before, row % 3 == 2) << row;
    before = file.size();
  }
}

// Long texts end a row group before its rows do.
TEST(Writer, MemoryOfTextsIsBounded) {
  std::string file;
  const auto writer = NewWriter({{.name = "a", .type = Type::kString}}, Into(file), 1 << 20);
  size_t rows = 0;
  for (; rows < 1000 && file.empty(); ++rows) {
    writer->AddText(std::to_string(rows) + std::string(1 << 20, 'x'));
    ASSERT_TRUE(writer->EndRow().ok());
  }
  EXPECT_LE(rows, 128U);
  EXPECT_GE(rows, 64U);
}

TEST(Writer, SchemasThatCannotBeAreRefused) {
  EXPECT_FALSE(Writer::Create({}, {}).ok());
  EXPECT_FALSE(Writer::Create({{.name = ""}}, {}).ok());
  const auto twice = Writer::Create({{.name = "x"}, {.name = "x"}}, {});
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(std::string(twice.status().message()), HasSubstr("'x'"));
}

TEST(Writer, ARowHasAValueOfItsTypePerColumn) {
  std::string file;
  const auto writer = NewWriter(
      {{.name = "a", .optional = false}, {.name = "b", .type = Type::kDouble}}, Into(file), 10);
  EXPECT_THROW(writer->AddDouble(1), std::logic_error);
  const auto fresh = NewWriter({{.name = "a", .optional = false}, {.name = "b"}}, Into(file), 10);
  EXPECT_THROW(fresh->AddNull(), std::logic_error);
  const auto shorter = NewWriter({{.name = "a"}, {.name = "b"}}, Into(file), 10);
  shorter->AddInteger(1);
  EXPECT_THROW(static_cast<void>(shorter->EndRow()), std::logic_error);
  shorter->AddNull();
  EXPECT_THROW(shorter->AddNull(), std::logic_error);
}

TEST(Writer, TheErrorOfTheSinkComesBack) {
  const auto writer = NewWriter(
      {{.name = "a"}}, [](std::string_view) { return absl::UnavailableError("full"); }, 2);
  writer->AddInteger(1);
  EXPECT_TRUE(writer->EndRow().ok());
  writer->AddInteger(1);
  EXPECT_EQ(writer->EndRow().message(), "full");
}

}  // namespace
}  // namespace vcpulse::parquet

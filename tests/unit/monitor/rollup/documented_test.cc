#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <variant>

#include "monitor/rollup/row.h"

namespace vcpulse::rollup {
namespace {

// docs/rollups.md has a row of each column, as the table has it.
TEST(Columns, AreDocumented) {
  std::string wanted;
  for (const Column& column : Columns()) {
    const char* const over_rows = column.adds_up ? "sum" : column.is_maximum ? "maximum" : "";
    wanted += "| `" + std::string(column.name) + "` | " +
              (column.type == Type::kText ? "text" : "integer") + " | " + over_rows + " | " +
              std::string(column.help) + " |\n";
  }
  std::ifstream docs(VCPULSE_ROLLUPS_DOC);
  std::string rows;
  for (std::string line; std::getline(docs, line);) {
    if (line.starts_with("| `")) rows += line + "\n";
  }
  EXPECT_EQ(rows, wanted) << "write these rows:\n" << wanted;
}

// RowParquet relies on it: a null in a required column is an error there.
TEST(Columns, AreNullOnlyWhereTheyAreOptional) {
  Row row;
  row.subject = std::make_shared<Subject>();
  for (const Column& column : Columns()) {
    EXPECT_EQ(std::holds_alternative<std::monostate>(column.of(row)), column.optional)
        << column.name;
  }
}

}  // namespace
}  // namespace vcpulse::rollup

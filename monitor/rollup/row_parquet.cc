#include "monitor/rollup/row_parquet.h"

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace vcpulse::rollup {

absl::StatusOr<std::unique_ptr<RowParquet>> RowParquet::Create(parquet::Sink sink,
                                                               const Notes& notes) {
  std::vector<parquet::Column> schema;
  for (const Column& column : Columns()) {
    schema.push_back(
        {.name = std::string(column.name),
         .type = column.type == Type::kText ? parquet::Type::kString : parquet::Type::kInt64,
         .optional = column.optional});
  }
  auto writer =
      parquet::Writer::Create(std::move(schema), std::move(sink),
                              {.created_by = absl::StrCat("vcpulse version ", notes.version)});
  if (!writer.ok()) return writer.status();
  (*writer)->SetMetadata("vcpulse.exported_by", notes.version);
  (*writer)->SetMetadata("vcpulse.window", notes.window);
  return absl::WrapUnique(new RowParquet(*std::move(writer)));
}

absl::Status RowParquet::Add(const Row& row) {
  for (const Column& column : Columns()) {
    const Value value = column.of(row);
    if (const auto* number = std::get_if<int64_t>(&value)) {
      writer_->AddInteger(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      writer_->AddText(*text);
    } else {
      writer_->AddNull();
    }
  }
  return writer_->EndRow();
}

}  // namespace vcpulse::rollup

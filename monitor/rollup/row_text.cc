#include "monitor/rollup/row_text.h"

#include <string>
#include <variant>

#include "boost/json.hpp"
#include "monitor/export/csv.h"

namespace vcpulse::rollup {

std::optional<Format> FindFormat(std::string_view name) {
  if (name == "csv") return Format::kCsv;
  if (name == "jsonl") return Format::kJsonLines;
  return std::nullopt;
}

absl::Status RowText::Add(const Row& row) {
  const bool is_json = format_ == Format::kJsonLines;
  if (!is_json && !has_header_) WriteHeader();
  const char* before = is_json ? "{" : "";
  for (const Column& column : Columns()) {
    out_.Add(before);
    before = ",";
    if (is_json) {
      out_.Add("\"");
      out_.Add(column.name);
      out_.Add("\":");
    }
    const Value value = column.of(row);
    if (const auto* number = std::get_if<int64_t>(&value)) {
      out_.AddNumber(*number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      out_.Add(is_json ? boost::json::serialize(*text) : exporting::CsvCell(*text));
    } else if (is_json) {
      out_.Add("null");
    }
  }
  out_.Add(is_json ? "}\n" : "\n");
  return out_.EndRow();
}

absl::Status RowText::Finish() {
  if (format_ == Format::kCsv && !has_header_) WriteHeader();
  return out_.Flush();
}

void RowText::WriteHeader() {
  has_header_ = true;
  const char* comma = "";
  for (const Column& column : Columns()) {
    out_.Add(comma);
    out_.Add(column.name);
    comma = ",";
  }
  out_.Add("\n");
}

}  // namespace vcpulse::rollup

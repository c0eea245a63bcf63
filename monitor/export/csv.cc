#include "monitor/export/csv.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace vcpulse::exporting {
namespace {

std::string NumberOrEmpty(std::optional<uint32_t> number) {
  return number ? std::to_string(*number) : "";
}

}  // namespace

absl::Status CsvExport::Add(const timeline::Entry& entry) {
  return table_.Add(entry, [this](const metric::Interval& interval) {
    if (!has_header_) WriteHeader();
    row_.is_first = true;
    table_.PutRow(interval, row_);
    out_.Add("\n");
    return out_.EndRow();
  });
}

void CsvExport::WriteHeader() {
  has_header_ = true;
  row_.is_first = true;
  for (const TableColumn& column : table_.Columns()) row_.AddText(CsvCell(column.name));
  out_.Add("\n");
}

absl::Status CsvExport::Finish() {
  if (!has_header_) WriteHeader();
  return out_.Flush();
}

void CsvExport::Row::Add(const VcpuCells& cells) {
  if (cells.number >= vcpus.size()) vcpus.resize(cells.number + 1);
  std::string& text = vcpus[cells.number];
  if (text.empty()) {
    text = absl::StrCat(CsvCell(cells.vm), ",", cells.vm_number, ",", NumberOrEmpty(cells.vm_pid),
                        ",", CsvCell(cells.vm_uuid.value_or("")), ",", cells.epoch, ",", cells.vcpu,
                        ",", NumberOrEmpty(cells.tid), ",", NumberOrEmpty(cells.kvm_id));
  }
  AddText(text);
}

std::string CsvCell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace vcpulse::exporting

#include "monitor/import/csv_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::importing {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

void CsvReader::Rewind() {
  source_.Rewind();
  rest_ = {};
  begun_ = false;
  row_ = 0;
}

absl::Status CsvReader::Error(std::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("row ", row_, ": ", ToAbsl(what)));
}

absl::StatusOr<bool> CsvReader::Next(std::vector<std::string>& cells) {
  while (rest_.empty() || rest_.starts_with("\n") || rest_.starts_with("\r\n")) {
    if (!rest_.empty()) {
      rest_.remove_prefix(rest_.front() == '\n' ? 1 : 2);
      ++row_;
      continue;
    }
    const absl::StatusOr<std::string_view> piece = source_.Next();
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return false;
    rest_ = *piece;
    if (!begun_ && rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    begun_ = true;
  }
  ++row_;
  size_t count = 0;
  for (bool more = true; more;) {
    if (count == kMaxCells) return Error(absl::StrCat("more than ", kMaxCells, " cells"));
    if (cells.size() == count) cells.emplace_back();
    std::string& cell = cells[count++];
    cell.clear();
    absl::Status status = rest_.starts_with('"') ? ReadQuoted(cell) : ReadPlain(cell);
    if (!status.ok()) return status;
    const absl::StatusOr<bool> separated = TakeSeparator();
    if (!separated.ok()) return separated.status();
    more = *separated;
  }
  cells.resize(count);
  return true;
}

absl::Status CsvReader::ReadQuoted(std::string& cell) {
  rest_.remove_prefix(1);
  while (true) {
    const size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) return Error("a quoted cell that does not end");
    cell.append(rest_.substr(0, std::min(quote, kMaxCellBytes + 1)));
    if (cell.size() > kMaxCellBytes) break;
    rest_.remove_prefix(quote + 1);
    if (!rest_.starts_with('"')) return absl::OkStatus();
    cell.push_back('"');
    rest_.remove_prefix(1);
  }
  return Error(absl::StrCat("a cell of more than ", kMaxCellBytes, " bytes"));
}

absl::Status CsvReader::ReadPlain(std::string& cell) {
  const size_t end = std::min(rest_.find_first_of(",\n\r\""), rest_.size());
  if (end > kMaxCellBytes) {
    return Error(absl::StrCat("a cell of more than ", kMaxCellBytes, " bytes"));
  }
  cell.assign(rest_.substr(0, end));
  rest_.remove_prefix(end);
  if (rest_.starts_with('"')) {
    return Error(absl::StrCat("a quote inside the cell that begins with ", Quoted(cell)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::TakeSeparator() {
  if (rest_.empty()) return false;
  if (rest_.front() == ',') {
    rest_.remove_prefix(1);
    return true;
  }
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  if (rest_.front() == '\n') {
    rest_.remove_prefix(1);
    return false;
  }
  if (rest_.front() == '\r') return Error("a carriage return without a line feed");
  return Error(absl::StrCat(Quoted(rest_.substr(0, 1)), " after a closing quote"));
}

}  // namespace vcpulse::importing

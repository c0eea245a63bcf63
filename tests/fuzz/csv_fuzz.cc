// The import of CSV: any text becomes a timeline that reads back whole, or one line of refusal.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "tests/fuzz/import_checks.h"

namespace {

using namespace vcpulse;

using fuzz::Check;
using fuzz::CheckRefusal;

// Rows that are numbered from 1 upwards, within the lines of the text.
void CheckReader(std::string_view text) {
  importing::CsvReader reader(text);
  std::vector<std::string> cells;
  uint64_t before = 0;
  while (true) {
    const auto more = reader.Next(cells);
    if (!more.ok()) return CheckRefusal(more.status());
    if (!*more) return;
    Check(reader.row() > before && reader.row() <= text.size());
    Check(!cells.empty() && cells.size() <= importing::kMaxCells);
    before = reader.row();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckReader(text);
  fuzz::CheckImports(importing::ParseCsv(text, "x.csv"));
  return 0;
}

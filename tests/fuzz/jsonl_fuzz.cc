// The import of JSON lines: any text becomes a timeline that reads back whole, or one line of
// refusal.
#include <cstdint>
#include <string_view>

#include "monitor/import/csv_table.h"
#include "tests/fuzz/import_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vcpulse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::CheckImports(importing::ParseJsonl(text, "x.jsonl"));
  return 0;
}

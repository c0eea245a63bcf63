// Imports: any text becomes a timeline that reads back whole, or one line of refusal. Which kind of
// text is chosen by the build: VCPULSE_FUZZED_IMPORT is ParseCsv, ParseJsonl or ParsePerfJson.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "kvm/base/text.h"
#include "monitor/import/csv_reader.h"
#include "monitor/import/csv_table.h"
#include "monitor/import/importer.h"
#include "monitor/import/perf_json.h"
#include "monitor/import/table.h"
#include "monitor/timeline/reader.h"
#include "tests/fuzz/checks.h"

namespace vcpulse::fuzz {
namespace {

void CheckRefusal(const absl::Status& status) { CheckMessage(ToStd(status.message())); }

// A table becomes a timeline that reads back whole, or one line of refusal.
void CheckImport(const importing::Table& table, const importing::ImportOptions& options) {
  std::vector<uint8_t> bytes;
  const auto writer = timeline::NewChunkWriter({}, [&](std::span<const uint8_t> chunk) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
    return absl::OkStatus();
  });
  const auto report = importing::ImportTable(table, options, *writer);
  if (!report.ok()) return CheckRefusal(report.status());
  Check(report->intervals + report->only_begin + report->says_nothing == table.rows.size());
  // Each epoch has one sample more than it has intervals.
  uint64_t samples = 0;
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
      if (tick->previous != nullptr) samples += tick->sample.vcpus.size();
    }
    return absl::OkStatus();
  });
  Check(read.ok() && read->damages.empty() && read->lost_records == 0 && read->ended_in_order);
  Check(samples == report->intervals);
}

// Both ways that residency may be had.
void CheckImports(const absl::StatusOr<importing::Table>& table) {
  if (!table.ok()) return CheckRefusal(table.status());
  static const auto profile = profile::Load("generic");
  Check(profile.ok());
  CheckImport(*table, {.profile = *profile});
  CheckImport(*table, {.tsc_hz = 2e9, .max_hz = 3e9, .profile = *profile});
}

// Rows that are numbered from 1 upwards, within the lines of the text.
void CheckReader(std::string_view text) {
  importing::WholeText source(text);
  importing::CsvReader reader(source);
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
}  // namespace vcpulse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  vcpulse::fuzz::CheckReader(text);
  vcpulse::fuzz::CheckImports(vcpulse::importing::VCPULSE_FUZZED_IMPORT(text, "x"));
  return 0;
}

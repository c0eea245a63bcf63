#pragma once

// What holds of every import, whatever the text was.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "monitor/import/importer.h"
#include "monitor/import/table.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::fuzz {

inline void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one line without what a terminal obeys.
inline void CheckRefusal(const absl::Status& status) {
  Check(!status.message().empty());
  for (const char c : status.message()) Check(c >= ' ' && c <= '~');
}

// A table becomes a timeline that reads back whole, or one line of refusal.
inline void CheckImport(const importing::Table& table, const importing::ImportOptions& options) {
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
inline void CheckImports(const absl::StatusOr<importing::Table>& table) {
  if (!table.ok()) return CheckRefusal(table.status());
  static const auto profile = profile::Load("generic");
  Check(profile.ok());
  CheckImport(*table, {.profile = *profile});
  CheckImport(*table, {.tsc_hz = 2e9, .max_hz = 3e9, .profile = *profile});
}

}  // namespace vcpulse::fuzz

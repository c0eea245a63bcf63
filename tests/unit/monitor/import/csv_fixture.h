#pragma once

// CSV text as the timeline that it becomes, in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "monitor/import/csv_table.h"
#include "monitor/import/importer.h"
#include "tests/fakes/collecting_writer.h"

namespace vcpulse::importing {

struct Imported {
  Table table;
  ImportReport report;
  fakes::CollectingWriter writer;

  // What every row counted of `event`, in the order of the table.
  std::vector<std::optional<uint64_t>> CountsOf(std::string_view event) const {
    std::vector<std::optional<uint64_t>> counts;
    for (const Row& row : table.rows) counts.push_back(table.CountOf(row, table.FindEvent(event)));
    return counts;
  }

  // The ticks of one epoch that have a delta, and what it is.
  std::vector<core::VcpuDelta> Deltas(uint32_t vm, uint32_t epoch, size_t vcpu = 0) const {
    std::vector<core::VcpuDelta> deltas;
    const fakes::CollectingWriter::Tick* before = nullptr;
    for (const auto& tick : writer.ticks) {
      if (tick.vm != vm || tick.epoch != epoch) continue;
      if (before != nullptr) {
        deltas.push_back(core::Subtract(before->sample.vcpus.at(vcpu), tick.sample.vcpus.at(vcpu)));
      }
      before = &tick;
    }
    return deltas;
  }
};

inline void ImportTableInto(absl::StatusOr<Table> table, Imported& imported,
                            ImportOptions options = {}) {
  ASSERT_TRUE(table.ok()) << table.status();
  imported.table = *std::move(table);
  const auto generic = profile::Load("generic");
  ASSERT_TRUE(generic.ok());
  options.profile = *generic;
  const auto report = ImportTable(imported.table, options, imported.writer);
  ASSERT_TRUE(report.ok()) << report.status();
  imported.report = *report;
}

inline void ImportText(std::string_view text, Imported& imported, ImportOptions options = {}) {
  ImportTableInto(ParseCsv(text, "x.csv"), imported, std::move(options));
}

// The message of the refusal; empty where there is none.
inline std::string Refusal(std::string_view text) {
  const auto table = ParseCsv(text, "x.csv");
  if (!table.ok()) return std::string(table.status().message());
  fakes::CollectingWriter writer;
  const auto report = ImportTable(*table, {}, writer);
  return report.ok() ? "" : std::string(report.status().message());
}

}  // namespace vcpulse::importing

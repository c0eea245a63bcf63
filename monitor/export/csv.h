#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/interval_table.h"
#include "monitor/export/text_output.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// A cell of a CSV file: in quotes where RFC 4180 wants that.
std::string CsvCell(std::string_view text);

// An IntervalTable as CSV (RFC 4180, lines end in "\n"): a header, then its rows. What was not
// measured is an empty cell. `vcpulse import csv` reads all that it knows of it.
class CsvExport final : public Exporter {
 public:
  explicit CsvExport(Sink sink) : out_(std::move(sink)), row_{out_} {}

  // IntervalTable::Expect.
  void Expect(const v1::VcpuSet& set) { table_.Expect(set); }

  // Errors: those of the sink, and of IntervalTable::Add.
  absl::Status Add(const timeline::Entry& entry) override;
  absl::Status Flush() override { return out_.Flush(); }
  // Writes the header where there was no row.
  absl::Status Finish() override;
  uint64_t unusable_ticks() const override { return table_.unusable_ticks(); }

 private:
  // The cells of a row, as IntervalTable::PutRow gives them.
  struct Row {
    TextOutput& out;
    std::vector<std::string> vcpus{};  // the text of VcpuCells, by number
    bool is_first = true;              // the next cell of its line

    void Add(const VcpuCells& cells);
    void AddInteger(std::integral auto number) {
      AddEmpty();
      out.AddNumber(number);
    }
    void AddDecimal(double number, int decimals) {
      AddEmpty();
      out.AddDecimal(number, decimals);
    }
    void AddText(std::string_view text) {
      AddEmpty();
      out.Add(text);
    }
    void AddBoolean(bool value) { AddText(value ? "true" : "false"); }
    void AddEmpty() {
      if (!is_first) out.Add(",");
      is_first = false;
    }
  };

  void WriteHeader();

  IntervalTable table_;
  TextOutput out_;
  Row row_;
  bool has_header_ = false;
};

}  // namespace vcpulse::exporting

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/text_output.h"
#include "monitor/rollup/row_writer.h"

namespace vcpulse::rollup {

enum class Format : uint8_t { kCsv, kJsonLines };

// Nothing for a name that is neither "csv" nor "jsonl".
std::optional<Format> FindFormat(std::string_view name);

// Rows as text: CSV (RFC 4180, lines end in "\n") with a header, null being an empty cell; or a
// JSON object per line. One thread.
class RowText final : public RowWriter {
 public:
  // `goes_on`: the sink has rows already, so there is no header.
  RowText(Format format, exporting::Sink sink, bool goes_on = false)
      : format_(format), out_(std::move(sink)), has_header_(goes_on) {}

  // Text is handed over in large pieces.
  absl::Status Add(const Row& row) override;
  // Writes the header where there was no row, and hands over the rest.
  absl::Status Finish() override;

 private:
  void WriteHeader();

  const Format format_;
  exporting::TextOutput out_;
  bool has_header_;
};

}  // namespace vcpulse::rollup

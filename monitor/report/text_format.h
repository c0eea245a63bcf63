#pragma once

// Numbers and paragraphs as the text report shows them. What is absent is "-".

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/metric/metric.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::report {

std::string Percent(std::optional<double> share);  // 0.1234 -> "12.3%"
// A share as Percent does it, a number with the decimals of its metric: an IPC "1.00", below 0.1
// "0.034".
std::string MetricText(const metric::Info& info, std::optional<double> value);
std::string Units(double count);      // 999, "1.50k", "12.3M", "123G", "1.23T"
std::string DurationText(double ns);  // "250 ns", "1.2 ms", "10.0 s", "58m20s"

// How wide paragraphs become, 100 columns until it is set. Once, before threads begin.
void SetParagraphWidth(size_t columns);

// Breaks `text` at spaces into lines of at most the width of paragraphs: the first starts with
// `first`, the others with as many spaces. A longer word stands alone on its line.
std::string Wrapped(std::string_view first, std::string_view text);

enum class Colour { kNone, kDim, kGreen, kYellow, kRed };

// `text` between the ANSI sequences of a colour.
std::string Painted(std::string_view text, Colour colour);

// Right-aligned columns, one space apart, as wide as their widest cell; no trailing blanks.
class Table {
 public:
  struct Cell {
    std::string text;
    Colour colour = Colour::kNone;
  };

  explicit Table(const std::vector<std::string>& header);

  // As many cells as the header has.
  void AddRow(std::vector<Cell> cells);
  // Lines with their line ends; colours as ANSI sequences where asked for.
  std::string Render(bool colour) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

// Of a timeline whose first record is not the recording's first one (a later part, or the beginning
// was lost).
std::string BeginsLateText(uint64_t first_sequence);

// What was lost, one line of words; empty where the timeline is whole. A recording that did not end
// in order is told here too.
std::string DescribeLoss(const timeline::ReadReport& read, uint64_t unusable_ticks,
                         bool ended_in_order);

}  // namespace vcpulse::report

#include "monitor/report/text_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"
#include "monitor/report/text_report.h"

namespace vcpulse::report {
namespace {

size_t paragraph_width = 100;

std::string_view Sequence(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kDim:
      return "\x1b[2m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kRed:
      return "\x1b[31m";
  }
  return "";
}

// Three significant digits.
std::string ThreeDigits(double number) {
  if (number >= 99.95) return absl::StrFormat("%.0f", number);
  if (number >= 9.995) return absl::StrFormat("%.1f", number);
  return absl::StrFormat("%.2f", number);
}

uint64_t DamagedBytes(const timeline::ReadReport& read) {
  uint64_t bytes = 0;
  for (const timeline::Damage& damage : read.damages) bytes += damage.bytes;
  return bytes;
}

// "7 records lost", and of those that were lost on the way to a collector why.
std::string LostText(const timeline::ReadReport& read) {
  const uint64_t lost = read.lost_records - read.lost_before_first;
  std::string text = Plural(lost, "record") + " lost";
  std::map<v1::LostRecords::Reason, uint64_t> reasons;
  uint64_t told = 0;
  for (const timeline::ToldLoss& loss : read.told_losses) {
    const uint64_t records = loss.last_sequence - loss.first_sequence + 1;
    reasons[loss.reason] += records;
    told += records;
  }
  if (told == 0) return text;
  absl::StrAppend(&text, told < lost ? absl::StrCat(", ", told, " of them") : "", " on the way: ");
  if (reasons.size() == 1) return text + reading::WhyLost(reasons.begin()->first);
  const auto with_count = [](std::string* out, const auto& reason) {
    absl::StrAppend(out, reason.second, " as ", reading::WhyLost(reason.first));
  };
  return text + absl::StrJoin(reasons, ", ", with_count);
}

}  // namespace

std::string Percent(std::optional<double> share) {
  if (!share) return "-";
  return absl::StrFormat("%.1f%%", *share * 100);
}

std::string MetricText(const metric::Info& info, std::optional<double> value) {
  if (info.IsShare()) return Percent(value);
  if (!value) return "-";
  return absl::StrFormat("%.*f", info.decimals + (*value < 0.1 ? 1 : 0), *value);
}

std::string Units(double count) {
  constexpr std::array<const char*, 5> kUnits = {"k", "M", "G", "T", "P"};
  if (count < 999.5) return absl::StrFormat("%.0f", count);
  size_t unit = 0;
  double scaled = count / 1000;
  while (scaled >= 999.5 && unit + 1 < kUnits.size()) {
    scaled /= 1000;
    ++unit;
  }
  return ThreeDigits(scaled) + kUnits[unit];
}

std::string DurationText(double ns) {
  // Not "1000.0 us": what rounds up to the next unit is shown in it.
  if (ns < 999.5) return absl::StrFormat("%.0f ns", ns);
  if (ns < 999.95e3) return absl::StrFormat("%.1f us", ns / 1e3);
  if (ns < 999.95e6) return absl::StrFormat("%.1f ms", ns / 1e6);
  if (ns < 120e9) return absl::StrFormat("%.1f s", ns / 1e9);
  return absl::FormatDuration(absl::Seconds(std::round(ns / 1e9)));
}

void SetParagraphWidth(size_t columns) { paragraph_width = columns; }

std::string Wrapped(std::string_view first, std::string_view text) {
  std::string out(first);
  size_t column = first.size();
  bool at_start = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!at_start && column + 1 + word.size() > paragraph_width) {
      out.append("\n").append(first.size(), ' ');
      column = first.size();
      at_start = true;
    }
    if (!at_start) out += ' ';
    column += word.size() + (at_start ? 0 : 1);
    out += word;
    at_start = false;
  }
  out += '\n';
  return out;
}

std::string Painted(std::string_view text, Colour colour) {
  std::string out(Sequence(colour));
  out += text;
  if (colour != Colour::kNone) out += "\x1b[0m";
  return out;
}

Table::Table(const std::vector<std::string>& header) {
  std::vector<Cell> cells;
  cells.reserve(header.size());
  for (const std::string& text : header) cells.push_back({text, Colour::kNone});
  rows_.push_back(std::move(cells));
}

void Table::AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

std::string Table::Render(bool colour) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const std::vector<Cell>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
  }
  std::string out;
  for (const std::vector<Cell>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += ' ';
      out.append(widths[i] - row[i].text.size(), ' ');
      out += colour ? Painted(row[i].text, row[i].colour) : row[i].text;
    }
    out += '\n';
  }
  return out;
}

std::string BeginsLateText(uint64_t first_sequence) {
  return absl::StrCat("begins with record ", first_sequence, ": earlier records are not here");
}

std::string DescribeLoss(const timeline::ReadReport& read, uint64_t unusable_ticks,
                         bool ended_in_order) {
  std::vector<std::string> parts;
  if (read.lost_before_first > 0) parts.push_back(BeginsLateText(read.lost_before_first + 1));
  if (!read.damages.empty() || read.lost_records > read.lost_before_first) {
    const std::string lost = LostText(read);
    parts.push_back(read.damages.empty()
                        ? lost
                        : absl::StrCat(Plural(read.damages.size(), "chunk"), " damaged (",
                                       Plural(DamagedBytes(read), "byte"), "), ", lost));
  }
  if (unusable_ticks > 0) {
    parts.push_back(
        absl::StrCat(Plural(unusable_ticks, "sample"), " unusable (the vCPU set is lost)"));
  }
  if (!ended_in_order) {
    parts.push_back("the recording was not closed cleanly (killed, or still running)");
  }
  return absl::StrJoin(parts, "; ");
}

std::string DescribeLoss(const Report& report) {
  return DescribeLoss(report.read, report.summary.unattributed_ticks(),
                      report.EndedInOrder().value_or(true));
}

}  // namespace vcpulse::report

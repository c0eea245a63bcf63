#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/compare/compare.h"
#include "monitor/compare/judging.h"
#include "monitor/report/text_format.h"

namespace vcpulse::compare {
namespace {

using report::Colour;
using report::Table;

constexpr std::array kVerdicts = {Verdict::kDiffers, Verdict::kSlight, Verdict::kMaybe,
                                  Verdict::kNotToldApart, Verdict::kUntold};

std::string HeadLine(const Described& described) {
  std::string text = Printable(described.file);
  absl::StrAppend(&text, ": ", report::DurationText(static_cast<double>(described.duration_ns)));
  if (described.start_realtime_ns) {
    absl::StrAppend(&text, absl::FormatTime(" from %Y-%m-%d %H:%M:%S UTC",
                                            absl::FromUnixNanos(*described.start_realtime_ns),
                                            absl::UTCTimeZone()));
  }
  if (!described.host_name.empty()) {
    absl::StrAppend(&text, " on ", Printable(described.host_name));
  }
  if (!described.kernel_release.empty()) {
    absl::StrAppend(&text, ", Linux ", Printable(described.kernel_release));
  }
  if (described.interval_ns > 0) {
    absl::StrAppend(
        &text, ", a tick every ",
        absl::FormatDuration(absl::Nanoseconds(static_cast<int64_t>(described.interval_ns))));
  }
  if (!described.classifiers.empty()) {
    absl::StrAppend(&text, ", bands by ", Printable(described.classifiers));
  }
  if (!described.loss.empty()) absl::StrAppend(&text, "; ", described.loss);
  return report::Wrapped(absl::StrCat(described.label, ": "), text);
}

std::string DegradedLine(const Described& described) {
  if (described.degraded.empty()) return "";
  return report::Wrapped("DEGRADED: ", absl::StrCat(described.label, ": ", described.degraded));
}

// That nothing happened in both is no news.
bool IsNothing(const Row& row) {
  return metric::InfoOf(row.metric).IsShare() && row.a.value == 0.0 && row.b.value == 0.0;
}

bool IsUnmeasured(const Row& row) { return !row.a.value && !row.b.value; }

std::string IntervalText(const Row& row) {
  if (!row.contrast) return "-";
  return absl::StrCat(ChangeText(row, row.contrast->low), " .. ",
                      ChangeText(row, row.contrast->high));
}

Colour ColourOf(Verdict verdict) {
  if (verdict == Verdict::kDiffers) return Colour::kYellow;
  return verdict == Verdict::kMaybe ? Colour::kNone : Colour::kDim;
}

std::string RowsTable(const Comparison& comparison, bool colour) {
  std::set<std::string> vms;
  for (const Row& row : comparison.rows) vms.insert(row.vm);
  const bool with_vm = vms.size() > 1;
  const bool with_phase = !comparison.phases.empty();
  std::vector<std::string> header;
  if (with_vm) header.emplace_back("VM");
  if (with_phase) header.emplace_back("phase");
  for (const char* name : {"vCPU", "quantity", "A", "B", "B - A", "95 % interval", "verdict"}) {
    header.emplace_back(name);
  }
  Table table(header);
  for (const Row& row : comparison.rows) {
    if (IsNothing(row) || IsUnmeasured(row)) continue;
    std::vector<Table::Cell> cells;
    if (with_vm) cells.push_back({Printable(row.vm)});
    if (with_phase) cells.push_back({Printable(row.phase.value_or("-"))});
    cells.push_back({absl::StrCat(row.vcpu)});
    cells.push_back({std::string(metric::InfoOf(row.metric).key)});
    cells.push_back({ValueText(row.metric, row.a.value)});
    cells.push_back({ValueText(row.metric, row.b.value)});
    cells.push_back({row.difference ? ChangeText(row, *row.difference) : "-"});
    cells.push_back({IntervalText(row)});
    cells.push_back({std::string(ToString(row.verdict)), ColourOf(row.verdict)});
    table.AddRow(std::move(cells));
  }
  return table.Render(colour);
}

std::string CountsText(const Comparison& comparison) {
  std::string text;
  for (const Verdict verdict : kVerdicts) {
    const auto count = std::ranges::count(comparison.rows, verdict, &Row::verdict);
    if (count == 0 && verdict != Verdict::kDiffers) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", ToAbsl(ToString(verdict)), " ", count);
  }
  const auto nothing = std::ranges::count_if(comparison.rows, IsNothing);
  const auto unmeasured = std::ranges::count_if(comparison.rows, IsUnmeasured);
  if (nothing > 0) absl::StrAppend(&text, "; not shown: ", nothing, " with 0 in both");
  if (unmeasured > 0) {
    absl::StrAppend(&text, nothing > 0 ? ", " : "; not shown: ", unmeasured,
                    " measured in neither");
  }
  return text;
}

Colour ColourOf(check::Outcome outcome) {
  if (outcome == check::Outcome::kFail) return Colour::kRed;
  return outcome == check::Outcome::kPass ? Colour::kGreen : Colour::kYellow;
}

std::string OutcomeText(check::Outcome outcome, bool colour) {
  constexpr size_t kWidth = 12;  // of INCONCLUSIVE
  const std::string name(check::ToString(outcome));
  const std::string padding(kWidth - std::min(kWidth, name.size()), ' ');
  return (colour ? report::Painted(name, ColourOf(outcome)) : name) + padding;
}

std::string LimitLines(const JudgedLimit& judged, bool colour) {
  std::string lines =
      absl::StrCat(OutcomeText(judged.outcome, colour), "  ", Printable(judged.limit.text), "\n");
  for (const LimitFinding& finding : judged.findings) {
    absl::StrAppend(&lines, "  ", OutcomeText(finding.outcome, colour), "  ", finding.subject, "  ",
                    finding.reason, "\n");
  }
  return lines;
}

}  // namespace

std::string RenderText(const Comparison& comparison, const TextOptions& options) {
  std::string out;
  for (const auto* const side : {&comparison.a, &comparison.b}) {
    for (const Described& described : *side) out += DegradedLine(described);
  }
  for (const auto* const side : {&comparison.a, &comparison.b}) {
    for (const Described& described : *side) out += HeadLine(described);
  }
  for (const std::string& warning : comparison.warnings) {
    out += report::Wrapped("warning: ", warning);
  }
  for (const std::string& note : comparison.notes) out += report::Wrapped("note: ", note);
  out += report::Wrapped(
      "note: ",
      comparison.between_runs
          ? "values are means of the runs, and intervals hold the variance between runs"
          : "one recording per side, so the variance between runs is unknown: another run of the "
            "same guest may differ by more (--before and --after take several recordings)");
  absl::StrAppend(&out, "\n", RowsTable(comparison, options.colour), "\n");
  out += report::Wrapped(
      "", absl::StrCat(Plural(comparison.rows.size(), "comparison"), ": ", CountsText(comparison)));
  if (!comparison.limits.empty()) out += '\n';
  for (const JudgedLimit& judged : comparison.limits) out += LimitLines(judged, options.colour);
  return out;
}

}  // namespace vcpulse::compare

#include "tools/vcpulse/import_notes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/import/csv_reader.h"

namespace vcpulse::tools {
namespace {

constexpr size_t kMostNames = 10;

std::string Plural(uint64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// What the columns could have told, and did not for want of an option.
void AddUnused(const importing::Table& table, const importing::ImportOptions& options,
               std::vector<std::string>& notes) {
  const bool ref_cycles = table.FindEvent("ref-cycles").has_value();
  if (ref_cycles && !options.tsc_hz) {
    notes.emplace_back("ref_cycles are not used: --tsc-hz says what they are a share of");
  }
  if (!ref_cycles && options.tsc_hz) {
    notes.emplace_back("--tsc-hz is not used: there is no column ref_cycles");
  }
  if (table.FindEvent("pause") && !options.profile.values.evidence.pause_cycles_each) {
    notes.push_back(absl::StrCat("pause counts instructions, and profile '", options.profile.name,
                                 "' does not say how long one takes: --profile names the CPU's "
                                 "(`vcpulse list profiles`)"));
  }
}

void AddLeftOut(const importing::Table& table, const importing::ImportReport& report,
                std::vector<std::string>& notes) {
  if (report.only_begin > 0) {
    notes.push_back(absl::StrCat(Plural(report.only_begin, table.unit),
                                 " without dt_ns came first of their vCPU: they only say when the "
                                 "next interval began"));
  }
  if (report.says_nothing > 0) {
    notes.push_back(absl::StrCat("left out ", Plural(report.says_nothing, table.unit),
                                 " with neither a count nor a time: nothing says what their vCPU "
                                 "did"));
  }
  if (report.impossible > 0) {
    notes.push_back(absl::StrCat(Plural(report.impossible, table.unit),
                                 " with counts that no CPU makes (more than 10 GHz or 20 "
                                 "instructions per cycle), first ",
                                 table.unit, " ", report.first_impossible,
                                 ": imported as they are"));
  }
  for (const importing::Skipped& kind : table.skipped) {
    notes.push_back(absl::StrCat("passed over ", Plural(kind.lines, "line"), ", first line ",
                                 kind.first, ": ", kind.what));
  }
  std::vector<std::string> ignored;
  for (const std::string& name : table.ignored) {
    if (ignored.size() == kMostNames) break;
    ignored.push_back(Quoted(name));
  }
  if (ignored.empty()) return;
  const size_t more = table.ignored.size() - ignored.size();
  notes.push_back(absl::StrCat("ignored ", table.unit == "line" ? "keys" : "columns", ": ",
                               absl::StrJoin(ignored, ", "),
                               more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

}  // namespace

std::vector<std::string> ImportNotes(const importing::Table& table,
                                     const importing::ImportOptions& options,
                                     const importing::ImportReport& report) {
  std::vector<std::string> notes = report.substitutions;
  AddUnused(table, options, notes);
  AddLeftOut(table, report, notes);
  notes.push_back(absl::StrCat(
      "imported ", Plural(report.intervals, table.unit == "line" ? "interval" : table.unit), ": ",
      Plural(report.vms, "VM"), ", ", Plural(report.vcpus, "vCPU"), ", ",
      Plural(report.ticks, "tick")));
  for (std::string& note : notes) note = Printable(note);
  return notes;
}

}  // namespace vcpulse::tools

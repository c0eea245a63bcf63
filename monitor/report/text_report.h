#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/metric/metric.h"
#include "monitor/report/report.h"
#include "monitor/report/strip.h"

namespace vcpulse::report {

struct TextOptions {
  bool colour = false;                    // ANSI sequences, for a terminal
  const Strips* strips = nullptr;         // to show below each table; null: none
  size_t width = 100;                     // columns, of the strips
  std::vector<metric::Metric> columns{};  // of the table, beside those that it always has
};

// The report for people: the host and how it was measured, one table per VM, and below the tables
// what a reader must know to trust them. Absent values are "-", estimates start with "~", counts of
// part of the time end with "+". Pure.
std::string RenderText(const Report& report, const TextOptions& options = {});

// The notes below the tables of one VM: why a value is absent or an estimate, what UNKNOWN was,
// gaps. Empty where there is nothing to say.
std::string RenderVmNotes(const Report& report, const VmSummary& vm);

// What closes a report: gaps of all VMs, markers, life cycle, vcpulse's own cost, damage.
std::string RenderClosing(const Report& report);

// What was lost, as in text_format.h.
std::string DescribeLoss(const Report& report);

}  // namespace vcpulse::report

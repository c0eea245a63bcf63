#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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
  std::optional<uint32_t> vm{};           // only this one, by number
  std::optional<uint32_t> vcpu{};         // only the vCPUs of this index
  std::optional<metric::Metric> sort{};   // vCPUs with most of it first; else by number
  bool worst_first = false;               // without `sort`: most SPINNING or starved first
  std::optional<size_t> top{};            // so many vCPUs at most; 0: all of them
  bool brief = false;                     // the headline and a line per VM
};

// The report for people: why it is degraded, the host, the worst vCPUs, and how it was measured;
// then of one or two VMs a table each with strips, of more a line each and the 16 worst vCPUs of
// all; a table of the phases; last what a reader must know to trust the numbers. Pure.
std::string RenderText(const Report& report, const TextOptions& options = {});

// The notes below the tables of one VM: why a value is absent or an estimate, what UNKNOWN was,
// gaps. `vcpu`: of the counts, those of this vCPU alone. Empty where there is nothing to say.
std::string RenderVmNotes(const Report& report, const NumberedVm& vm,
                          std::optional<uint32_t> vcpu = std::nullopt);

// The same of several VMs: what UNKNOWN was with the vCPUs that had most of it, and a note that is
// the same for some VMs once, with their numbers.
std::string RenderNotes(const Report& report, const Vms& vms,
                        std::optional<uint32_t> vcpu = std::nullopt);

// What closes a report: gaps of all VMs, markers, life cycle, vcpulse's own cost, damage.
std::string RenderClosing(const Report& report);

// What `record --prove` found, in one line: "counters proven: 19 claims hold".
std::string ProofText(const v1::CounterProof& proof);

// What was lost, as in text_format.h.
std::string DescribeLoss(const Report& report);

}  // namespace vcpulse::report

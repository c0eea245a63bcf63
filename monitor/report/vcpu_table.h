#pragma once

// Tables of the text report: a row per vCPU, a row per VM. Absent values are "-", estimates start
// with "~", counts of part of the time end with "+". Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/metric/metric.h"
#include "monitor/report/summary.h"
#include "monitor/report/text_report.h"

namespace vcpulse::report {

struct VcpuRow {
  uint32_t vm = 0;
  uint32_t index = 0;
  uint32_t tid = 0;                   // 0: not known
  const VcpuSummary* vcpu = nullptr;  // null: it never could be opened
};

// Of these VMs, those of `options.vcpu`, in the order of `options.sort`; all of them: `options.top`
// is the caller's. vCPUs that never could be opened are there, last where rows are sorted.
std::vector<VcpuRow> RowsOf(const Vms& vms, const TextOptions& options);

// `with_vm`: a first column names the VM.
std::string RenderVcpuTable(const Summary& summary, const std::vector<VcpuRow>& rows, bool with_vm,
                            const TextOptions& options);

// One row per VM, all its vCPUs together. Its gaps include the ticks that every VM lacks.
std::string RenderVmTable(const Report& report, const Vms& vms, const TextOptions& options);

// One row per phase and vCPU of these VMs; where those would be more than `at_most`, or in brief,
// per phase and VM (all its vCPUs together); where those would, too, per phase. At most `at_most`
// rows, with a line that says how many more there are. Empty where nothing was measured in a phase.
std::string RenderPhaseTable(const Report& report, const Vms& vms, size_t at_most,
                             const TextOptions& options);

// Whether no epoch of it read a hardware counter.
bool IsDegraded(const VmSummary& vm);
// reading::DegradedText by what was opened, whatever the session expected; by the session where no
// set came.
std::string DegradedText(const Report& report);
// Whether an IPC alone called some of its time SPINNING: a hint, to be marked as one.
bool HasIpcSpinning(const VmSummary& vm);
// `1 "web"`.
std::string VmLabel(uint32_t number, const VmSummary& vm);

}  // namespace vcpulse::report

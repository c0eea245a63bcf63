#pragma once

// What KVM's and the scheduler's counts say of a vCPU's time beside its bands (docs/statistics.md).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/metric/metric.h"
#include "monitor/report/causes.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// Those that hold of a vCPU.
std::vector<const Cause*> CausesOf(const VcpuSummary& vcpu);

// A line per vCPU of which one holds; of many, the first ones. Empty where none does.
std::string WhyNotes(const VmSummary& vm, std::optional<uint32_t> vcpu);

// What explains the time that each vCPU of a VM was on a CPU without counters, and that it was
// halted but busy for the host (HALTED, polling): likewise.
std::string TimeNotes(const VmSummary& vm, std::optional<uint32_t> vcpu);

// On which CPUs of the host readings found the thread of this vCPU; of a report of several nothing.
std::string HostCpuNotes(const VmSummary& vm, std::optional<uint32_t> vcpu);

// Which vCPUs ran on other threads of its core: likewise. Empty where no core has two.
std::string SmtNotes(const Report& report, const VmSummary& vm, std::optional<uint32_t> vcpu);

// Which code its vCPUs ran in the windows of `record --hotspots`: a line per vCPU, or why there is
// none. Empty where none was asked for.
std::string HotNotes(const Report& report, const NumberedVm& vm, std::optional<uint32_t> vcpu);

// Who had the CPUs of its starved vCPUs in the windows of `record --competitors`: likewise.
std::string CompetitorNotes(const Report& report, const NumberedVm& vm,
                            std::optional<uint32_t> vcpu);

// Why a column of readings that was asked for is empty; nothing where none is.
std::string MissingStatisticsNote(const Report& report, const VmSummary& vm,
                                  std::span<const metric::Metric> columns);

}  // namespace vcpulse::report

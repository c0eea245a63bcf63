#pragma once

#include <cstdint>

#include "boost/json/fwd.hpp"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::report {

// What why_notes.h says of one vCPU, for programs: adds "causes", "without_counters", "polling",
// "hotspots", "competitors" and "host_cpu..." (json_report.h), null where nothing was recorded.
// `vm` is the VM's number.
void AddWhy(const Report& report, uint32_t vm, const VcpuSummary& vcpu, boost::json::object& out);

}  // namespace vcpulse::report

#pragma once

#include <string>

#include "monitor/report/report.h"
#include "monitor/report/text_report.h"

namespace vcpulse::report {

// What a reader looks for first, in some lines: the longest times in one go that a vCPU was
// SPINNING, and the vCPUs that waited most for a CPU, with when and in which phase. What cannot be
// known, as no counter was read or waiting was not measured, is said. A tick is starved from a
// tenth of waiting on. Empty without an interval. Pure.
std::string RenderHeadline(const Report& report, const TextOptions& options);

}  // namespace vcpulse::report

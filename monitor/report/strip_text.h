#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "monitor/report/report.h"
#include "monitor/report/strip.h"

namespace vcpulse::report {

inline constexpr size_t kNarrowestStrips = 40;

struct StripOptions {
  size_t width = 100;   // of the whole line, columns; at least kNarrowestStrips
  bool colour = false;  // ANSI sequences that end on each line, so that a pager may show any part
};

// The strips of one VM, a character per slot of time, with its markers and a time axis below.
// Legible without colour. Empty where nothing was sampled. Pure.
std::string RenderStrips(const Report& report, const Strips& strips, uint32_t vm,
                         const StripOptions& options);

// What the characters mean, one line or two; empty without a strip.
std::string StripLegend(const Strips& strips, const StripOptions& options);

}  // namespace vcpulse::report

#pragma once

#include <string>
#include <string_view>

#include "monitor/check/result.h"

namespace vcpulse::check {

struct TextOptions {
  bool colour = false;  // ANSI sequences, for a terminal
};

// The result for people: what was judged, each expectation with its findings, what makes numbers
// doubtful, and the verdict as the last line. Findings that did not pass come first and say what
// was wanted, when it was worst, and why; the others only what was observed. `file` is what a
// person calls the timeline. Pure.
std::string RenderText(const Result& result, std::string_view file,
                       const TextOptions& options = {});

}  // namespace vcpulse::check

#pragma once

#include <string>
#include <string_view>

#include "monitor/check/result.h"

namespace vcpulse::check {

// The result as KTAP, version 1 (Documentation/dev-tools/ktap.rst of Linux): a test per
// expectation with a subtest per subject. SKIP is "ok ... # SKIP", as kselftest prints it. KTAP has
// no word for INCONCLUSIVE: it is "not ok ... # ERROR", which says that the test could not be
// carried out, and is no pass for a reader that knows no directive either. Names hold no '#' (KTAP
// cannot quote it): '?' stands there. `file` is what a person calls the timeline. Pure.
std::string RenderKtap(const Result& result, std::string_view file);

}  // namespace vcpulse::check

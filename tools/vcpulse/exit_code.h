#pragma once

#include "monitor/check/outcome.h"

namespace vcpulse::tools {

// The exit code of a command that judges (docs/architecture.md lists them).
int ExitCodeOf(check::Outcome outcome);

}  // namespace vcpulse::tools

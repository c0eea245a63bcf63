#pragma once

#include <string>

#include "monitor/timeline/merge.h"

namespace vcpulse::tools {

// Says on stderr what of a recording is damaged, missing or there twice; `output` is the file that
// was written of it.
void SayLosses(const timeline::MergeReport& report, const std::string& output);

}  // namespace vcpulse::tools

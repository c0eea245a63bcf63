#pragma once

#include <optional>
#include <string>

#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {

// Streams the timeline in `file` (- is standard input) to a collector: its chunks as they are, each
// when its last record is due, `speed` times as fast as it was recorded; nothing: as fast as the
// collector takes them. What is missing in the file is told as lost. Ends where all is
// acknowledged, where the collector takes nothing for 30 s, or by a signal. Prints what was sent.
// The exit code.
int ReplayToCollector(const std::string& file, const std::optional<double>& speed,
                      const UplinkRequest& request);

}  // namespace vcpulse::tools

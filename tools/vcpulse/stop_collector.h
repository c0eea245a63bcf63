#pragma once

#include <chrono>

#include "monitor/stream/net/collector.h"

namespace vcpulse::tools {

// Stops it in order and prints what was left undone after `patience`. The exit code: an error where
// something was.
int StopCollector(stream::Collector& collector, std::chrono::seconds patience);

}  // namespace vcpulse::tools

#pragma once

#include <chrono>

#include "monitor/stream/net/collector.h"

namespace vcpulse::tools {

// Stops it in order. Says where something was not written within `patience`; the exit code is an
// error then.
int StopCollector(stream::Collector& collector, std::chrono::seconds patience);

}  // namespace vcpulse::tools

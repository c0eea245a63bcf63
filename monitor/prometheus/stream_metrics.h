#pragma once

#include <string>

#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/uplink.h"

namespace vcpulse::prometheus {

// In Prometheus's exposition format, for /metrics. Pure.
std::string TextOf(const stream::Uplink::Stats& stats);
std::string TextOf(const stream::Collector::Stats& stats);

}  // namespace vcpulse::prometheus

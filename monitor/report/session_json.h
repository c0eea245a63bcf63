#pragma once

#include "boost/json.hpp"
#include "monitor/report/report.h"

namespace vcpulse::report {

// What a timeline says of its recording: host, clock, settings, proof of the counters; null where
// it has no session record.
boost::json::value SessionJson(const Report& report);

}  // namespace vcpulse::report

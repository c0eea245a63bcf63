#pragma once

#include <cstdint>
#include <string>

#include "monitor/timeline/reader.h"

namespace vcpulse::report {

// What was lost, one line of words; empty where the timeline is whole. A recording that did not end
// in order is told here too.
std::string DescribeLoss(const timeline::ReadReport& read, uint64_t unusable_ticks,
                         bool ended_in_order);

}  // namespace vcpulse::report

#pragma once

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::reading {

// Why an agent does not send records that it had, in the words of a person who runs it: "the
// agent's spool was full".
const char* WhyLost(v1::LostRecords::Reason reason);

}  // namespace vcpulse::reading

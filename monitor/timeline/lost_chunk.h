#pragma once

#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// What tells that the records of a chunk are lost.
v1::LostRecords LostChunk(const ChunkHeader& header, v1::LostRecords::Reason reason);

}  // namespace vcpulse::timeline

#include "monitor/timeline/lost_chunk.h"

namespace vcpulse::timeline {

v1::LostRecords LostChunk(const ChunkHeader& header, v1::LostRecords::Reason reason) {
  v1::LostRecords lost;
  lost.set_first_sequence(header.first_sequence);
  lost.set_last_sequence(header.last_sequence);
  lost.set_first_mono_ns(header.first_mono_ns);
  lost.set_last_mono_ns(header.last_mono_ns);
  lost.set_reason(reason);
  return lost;
}

}  // namespace vcpulse::timeline

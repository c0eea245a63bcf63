// Writes the golden timeline of schema release 5 (golden_timeline_v5.h tells its content):
//   make_timeline_v5 tests/data/timeline-v5.vpt
// Run once, by a person; the output is kept in the repository and never written again.

#include <cstdio>
#include <fstream>

#include "tests/unit/monitor/timeline/golden_timeline_v5.h"

int main(int argc, char** argv) {
  namespace timeline = vcpulse::timeline;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_timeline_v5 OUT.vpt\n");
    return 2;
  }
  std::vector<timeline::Bytes> chunks;
  const auto writer =
      timeline::NewChunkWriter(timeline::golden_v5::kStream, timeline::CollectInto(&chunks));
  timeline::golden_v5::Write(*writer);
  const timeline::Bytes bytes = timeline::Concatenate(chunks);
  std::ofstream out(argv[1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  return out ? 0 : 1;
}

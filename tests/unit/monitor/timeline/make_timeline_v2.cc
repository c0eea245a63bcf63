// Writes the golden timeline of schema release 2 (golden_timeline_v2.h tells its content):
//   make_timeline_v2 PROFILE.json tests/data/timeline-v2.vpt
// PROFILE.json is what `vcpulse list profiles generic` printed at that release. Run once, by a
// person; the output is kept in the repository and never written again.

#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/unit/monitor/timeline/golden_timeline_v2.h"

int main(int argc, char** argv) {
  namespace timeline = vcpulse::timeline;
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_timeline_v2 PROFILE.json OUT.vpt\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  const std::string profile((std::istreambuf_iterator<char>(in)), {});
  std::vector<timeline::Bytes> chunks;
  const auto writer =
      timeline::NewChunkWriter(timeline::golden_v2::kStream, timeline::CollectInto(&chunks));
  timeline::golden_v2::Write(*writer, profile);
  const timeline::Bytes bytes = timeline::Concatenate(chunks);
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  return out && !profile.empty() ? 0 : 1;
}

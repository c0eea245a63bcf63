// Writes the golden timeline of a schema release from 3 on (golden_timeline_vN.h tells its
// content):
//   make_golden_timeline 5 tests/data/timeline-v5.vpt
// Run once per release, by a person; the output is kept in the repository and never written again.

#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "tests/unit/monitor/timeline/golden_timeline_v5.h"

namespace vcpulse::timeline {
namespace {

template <typename Write>
Bytes Written(const StreamId& stream, Write write) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(stream, CollectInto(&chunks));
  write(*writer);
  return Concatenate(chunks);
}

int Make(const std::string& release, const char* path) {
  const std::map<std::string, Bytes> releases = {
      {"3", Written(golden_v3::kStream, golden_v3::Write)},
      {"4", Written(golden_v4::kStream, golden_v4::Write)},
      {"5", Written(golden_v5::kStream, golden_v5::Write)}};
  const auto found = releases.find(release);
  if (found == releases.end()) return std::fprintf(stderr, "no release %s\n", release.c_str()), 2;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(found->second.data()),
            static_cast<std::streamsize>(found->second.size()));
  out.close();
  return out ? 0 : 1;
}

}  // namespace
}  // namespace vcpulse::timeline

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: make_golden_timeline RELEASE OUT.vpt\n"), 2;
  return vcpulse::timeline::Make(argv[1], argv[2]);
}

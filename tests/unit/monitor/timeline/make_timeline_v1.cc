// Writes the golden timeline of schema release 1 (golden_timeline_v1.h tells its content) and the
// seeds of the chunk fuzzer:
//   make_timeline_v1 tests/data
// Run once per schema release, by a person; the outputs are kept in the repository. Once a release
// is out its file is never written again.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "monitor/timeline/tick_columns.h"
#include "tests/unit/monitor/timeline/golden_timeline_v1.h"

namespace vcpulse::timeline {
namespace {

bool WriteFile(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) std::printf("%s: %zu bytes\n", path.c_str(), bytes.size());
  return static_cast<bool>(out);
}

// The fuzzer's input of the other mode: what is inside of a chunk (see chunk_fuzz.cc).
Bytes ContentSeed() {
  v1::ChunkPayload content;
  *content.mutable_session() = GoldenSession().session();
  *content.add_vcpu_sets() = GoldenSet(1, 1, 2, 1).vcpu_set();
  TickRows rows{.vcpus = 2, .events = 1};
  for (uint64_t t = 0; t < 3; ++t) {
    rows.Append(t + 2, GoldenSample(1, t, 2, 1), GoldenVerdicts(t, 2));
  }
  v1::VmTicks* ticks = content.add_ticks();
  ticks->set_vm(1);
  ticks->set_epoch(1);
  EncodeColumns(rows, ticks);
  *content.add_records() = MarkerRecord("m", 5);
  content.mutable_records(0)->set_sequence(1);
  const std::string text = content.SerializeAsString();
  Bytes seed = {1, 1, 4};  // mode, first and last sequence
  seed.insert(seed.end(), text.begin(), text.end());
  return seed;
}

bool Run(const std::filesystem::path& folder) {
  std::vector<Bytes> chunks;
  const auto writer = NewChunkWriter(kGoldenStream, CollectInto(&chunks));
  WriteGolden(*writer);
  Bytes whole = {0};  // the fuzzer's mode
  for (const Bytes& chunk : chunks) whole.insert(whole.end(), chunk.begin(), chunk.end());
  Bytes torn = {0};
  torn.insert(torn.end(), chunks[1].begin(), chunks[1].end() - 30);
  torn.insert(torn.end(), chunks[2].begin(), chunks[2].end());
  Bytes short_header = {0};
  short_header.insert(short_header.end(), chunks[0].begin(), chunks[0].begin() + 60);
  const std::filesystem::path seeds = folder / "corpus" / "chunk";
  return WriteFile(folder / "timeline-v1.vpt", Concatenate(chunks)) &&
         WriteFile(seeds / "whole", whole) && WriteFile(seeds / "torn", torn) &&
         WriteFile(seeds / "short-header", short_header) &&
         WriteFile(seeds / "content", ContentSeed());
}

}  // namespace
}  // namespace vcpulse::timeline

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_timeline_v1 FOLDER\n");
    return 2;
  }
  return vcpulse::timeline::Run(argv[1]) ? 0 : 1;
}

// A spool of which something cannot be read when an agent starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "monitor/stream/disk/spool.h"
#include "tests/fakes/crashing_files.h"
#include "tests/unit/stream_chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const Spool::Options kUnreadable{.directory = "/spool", .segment_bytes = 300};
const timeline::StreamId kUnreadableStream = StreamNumber(1);

// Three segments of one chunk each; their paths.
std::vector<std::string> ThreeSegments(fakes::CrashingFiles& files) {
  const auto spool = Spool::Open(files, kUnreadable);
  EXPECT_TRUE(spool.ok()) << spool.status();
  for (const uint64_t first : {1, 11, 21}) {
    const StreamChunk chunk = MakeChunk(kUnreadableStream, first, first + 9);
    (*spool)->Add(chunk.header, chunk.bytes);
  }
  std::vector<std::string> paths = files.Paths();
  std::erase_if(paths, [](const std::string& path) { return !path.ends_with(".vpt"); });
  EXPECT_THAT(paths, SizeIs(3));
  return paths;
}

uint64_t ChunksIn(Spool& spool) {
  uint64_t chunks = 0;
  for (uint64_t sequence = 1;; sequence += 10) {
    const auto item = spool.At(kUnreadableStream, sequence);
    if (!item) return chunks;
    if (!item->is_lost) ++chunks;
  }
}

// A disk that fails, a server that is gone, a file that somebody else owns: it may come back.
TEST(SpoolUnreadable, NothingIsRemovedForAnErrorOfReading) {
  for (const int error : {EIO, ESTALE, ENXIO, EACCES, ENOMEM}) {
    for (const size_t which : {0, 1, 2}) {
      fakes::CrashingFiles files;
      const std::vector<std::string> paths = ThreeSegments(files);
      files.FailReadsOf(paths[which], error);
      const absl::Status status = Spool::Open(files, kUnreadable).status();
      EXPECT_FALSE(status.ok()) << "errno " << error;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("the spool in /spool: " + paths[which]),
                        HasSubstr("move that file away"), Not(HasSubstr("directory of its own"))));
      files.FailReadsOf(paths[which], std::nullopt);
      const auto spool = Spool::Open(files, kUnreadable);
      ASSERT_TRUE(spool.ok()) << spool.status();
      EXPECT_EQ(ChunksIn(**spool), 3) << "errno " << error << " of segment " << which;
    }
  }
}

// What was read and holds no chunk is of no use to anybody.
TEST(SpoolUnreadable, AFileThatHoldsNoChunkGoes) {
  fakes::CrashingFiles files;
  const std::vector<std::string> paths = ThreeSegments(files);
  files.Put(paths[1], std::vector<uint8_t>(100, 0));
  const auto spool = Spool::Open(files, kUnreadable);
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_EQ(ChunksIn(**spool), 2);
  EXPECT_EQ(std::ranges::count(files.Paths(), paths[1]), 0);
}

}  // namespace
}  // namespace vcpulse::stream

// Chunks of a view: in memory within bounds, or the places of a file.
#include "monitor/top/chunk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/fakes/temporary_folder.h"
#include "tests/unit/monitor/top/top_fixture.h"

namespace vcpulse::top {
namespace {

void Append(const std::string& path, std::span<const Chunk> chunks) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  for (const Chunk& chunk : chunks) {
    file.write(reinterpret_cast<const char*>(chunk.data()),
               static_cast<std::streamsize>(chunk.size()));
  }
}

class ChunkStoreTest : public testing::Test {
 protected:
  ~ChunkStoreTest() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = fakes::MakeTemporaryFolder();
};

TEST_F(ChunkStoreTest, FileAndMemoryHaveTheSameChunks) {
  const auto chunks = ChunksOf({});
  Append(folder_ + "/a.vpt", chunks);
  const auto file = ChunkStore::OpenFile(folder_ + "/a.vpt");
  ASSERT_TRUE(file.ok()) << file.status();
  ChunkStore memory{ChunkStore::Limits()};
  AddAll(memory, chunks);
  ASSERT_EQ(file->end(), memory.end());
  ASSERT_EQ(memory.end(), chunks.size());
  for (uint64_t n = 0; n < memory.end(); ++n) {
    EXPECT_EQ(file->Place(n).begin_ns, memory.Place(n).begin_ns);
    EXPECT_EQ(file->Place(n).end_ns, memory.Place(n).end_ns);
    const auto loaded = file->Load(n);
    ASSERT_TRUE(loaded.ok());
    EXPECT_TRUE(std::ranges::equal(*loaded, chunks[n]));
  }
  EXPECT_EQ(file->streams().front().host, "host1");
  EXPECT_EQ(file->streams().front().ahead_ns, kRealtimeAhead_ns);
  EXPECT_EQ(file->streams().front().interval_ns, 100'000'000);
}

TEST_F(ChunkStoreTest, AFileThatGrowsIsTakenIn) {
  const auto chunks = ChunksOf({});
  const std::string path = folder_ + "/a.vpt";
  Append(path, std::span(chunks).first(3));
  auto store = ChunkStore::OpenFile(path);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(store->end(), 3u);
  Append(path, std::span(chunks).subspan(3));
  ASSERT_TRUE(store->Refresh().ok());
  EXPECT_EQ(store->end(), chunks.size());
}

TEST_F(ChunkStoreTest, RefusesWhatIsNoTimeline) {
  std::ofstream(folder_ + "/a.vpt") << "no timeline at all, but some text";
  EXPECT_FALSE(ChunkStore::OpenFile(folder_ + "/a.vpt").ok());
  std::ofstream(folder_ + "/empty.vpt") << "";
  EXPECT_FALSE(ChunkStore::OpenFile(folder_ + "/empty.vpt").ok());
  EXPECT_FALSE(ChunkStore::OpenFile(folder_ + "/missing.vpt").ok());
}

TEST_F(ChunkStoreTest, ForgetsTheOldestBeyondItsBytes) {
  const auto chunks = ChunksOf({.ticks = 1000});
  const uint64_t limit = chunks.back().size() * 5;
  ChunkStore store({.bytes = limit});
  AddAll(store, chunks);
  EXPECT_LE(store.held_bytes(), limit);
  EXPECT_GT(store.first(), 0u);
  EXPECT_EQ(store.end(), chunks.size());
}

TEST_F(ChunkStoreTest, ForgetsWhatIsTooOldAndKeepsTheFirstOfAll) {
  const auto chunks = ChunksOf({.ticks = 1000});  // 100 s, a second each
  ChunkStore store({.age_ns = 10 * kSecond_ns});
  AddAll(store, chunks);
  EXPECT_GE(store.end() - store.first(), 10u);
  EXPECT_LE(store.end() - store.first(), 12u);
  EXPECT_FALSE(store.HoldsFirst(0));
  const auto first = store.LoadFirst(0);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(std::ranges::equal(*first, chunks.front()));
}

TEST_F(ChunkStoreTest, CountsChunksThatCannotBeRead) {
  auto chunks = ChunksOf({});
  chunks.front().back() ^= 1;
  ChunkStore store{ChunkStore::Limits()};
  EXPECT_FALSE(store.Add("", chunks.front()).ok());
  EXPECT_EQ(store.unreadable(), 1u);
  EXPECT_EQ(store.end(), 0u);
  EXPECT_FALSE(store.Span());
}

TEST_F(ChunkStoreTest, StreamsOfSeveralAgentsAreApart) {
  ChunkStore store{ChunkStore::Limits()};
  AddAll(store, ChunksOf({.stream = 1}), "a");
  AddAll(store, ChunksOf({.stream = 2, .has_realtime = false}), "b");
  ASSERT_EQ(store.streams().size(), 2u);
  EXPECT_EQ(store.streams()[0].host, "a");
  EXPECT_TRUE(store.streams()[0].has_realtime);
  EXPECT_EQ(store.streams()[1].host, "b");
  EXPECT_FALSE(store.streams()[1].has_realtime);
}

}  // namespace
}  // namespace vcpulse::top

// What the spool and the collected timelines do when the disk takes nothing more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "monitor/stream/disk/spool.h"
#include "monitor/stream/disk/stream_store.h"
#include "tests/fakes/crashing_files.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const timeline::StreamId kFullStream = StreamNumber(3);

class FullDisk : public testing::Test {
 protected:
  FullDisk() { EXPECT_TRUE(files_.MakeDirectories("/d").ok()); }

  std::unique_ptr<StreamStore> OpenStore() {
    auto store = StreamStore::Open(files_, "/d/a/s", kFullStream, {}, 1, 0);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static absl::Status Append(StreamStore& store, uint64_t sequence) {
    const StreamChunk chunk = MakeChunk(kFullStream, sequence, sequence);
    return store.Append(chunk.header, chunk.bytes, 0);
  }
  std::unique_ptr<Spool> OpenSpool(uint64_t max_memory_bytes) {
    auto spool = Spool::Open(files_, {.directory = "/d/s", .max_memory_bytes = max_memory_bytes});
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }
  static void Add(Spool& spool, uint64_t sequence) {
    const StreamChunk chunk = MakeChunk(kFullStream, sequence, sequence);
    spool.Add(chunk.header, chunk.bytes);
  }
  // 'c' for a chunk, 'l' for a lost record, from 1 on.
  static std::string All(Spool& spool) {
    std::string text;
    while (const auto item = spool.At(kFullStream, text.size() + 1)) {
      const size_t count =
          item->is_lost ? item->lost.last_sequence() - item->lost.first_sequence() + 1 : 1;
      text.append(count, item->is_lost ? 'l' : 'c');
    }
    return text;
  }

  fakes::CrashingFiles files_;
  const uint64_t chunk_bytes_ = MakeChunk(kFullStream, 1, 1).bytes.size();
};

TEST_F(FullDisk, StoreIsAsBeforeAndGoesOnOnceThereIsRoom) {
  const auto store = OpenStore();
  ASSERT_TRUE(Append(*store, 1).ok());
  files_.SetCapacity(chunk_bytes_);
  EXPECT_TRUE(absl::IsResourceExhausted(Append(*store, 2)));
  EXPECT_EQ(store->written(), 1);
  EXPECT_TRUE(store->Sync().ok()) << "what was written before can still be made durable";
  EXPECT_EQ(store->durable(), 1);
  EXPECT_FALSE(Append(*store, 2).ok());
  files_.SetCapacity(1000);
  EXPECT_TRUE(Append(*store, 2).ok());
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->durable(), 2);
}

TEST_F(FullDisk, StoreCannotEvenMakeItsFolder) {
  const auto store = OpenStore();
  files_.FailAll(EROFS);
  EXPECT_FALSE(Append(*store, 1).ok());
  EXPECT_EQ(store->written(), 0);
  files_.FailAll(std::nullopt);
  EXPECT_TRUE(Append(*store, 1).ok());
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(OpenStore()->durable(), 1);
}

// After a failed sync nobody knows what is on the disk.
TEST_F(FullDisk, StoreGivesUpWhatASyncDidNotTake) {
  const auto store = OpenStore();
  ASSERT_TRUE(Append(*store, 1).ok());
  ASSERT_TRUE(store->Sync().ok());
  ASSERT_TRUE(Append(*store, 2).ok());
  files_.FailNth(1, EIO);
  EXPECT_FALSE(store->Sync().ok());
  EXPECT_EQ(store->written(), 1);
  EXPECT_EQ(store->durable(), 1);
  EXPECT_EQ(files_.Get(store->directory() + "/00000000000000000001.vpt").size(), chunk_bytes_);
  ASSERT_TRUE(Append(*store, 2).ok());
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_THAT(*files_.List(store->directory()),
              ElementsAre("00000000000000000001.vpt", "00000000000000000002.vpt"));
}

TEST_F(FullDisk, StoreTakesNothingBeforeItCouldCut) {
  const auto store = OpenStore();
  ASSERT_TRUE(Append(*store, 1).ok());
  files_.FailAll(EIO);
  EXPECT_FALSE(store->Sync().ok());
  EXPECT_FALSE(Append(*store, 1).ok());
  EXPECT_FALSE(store->Sync().ok());
  files_.FailAll(std::nullopt);
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->durable(), 0);
  EXPECT_TRUE(Append(*store, 1).ok());
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->durable(), 1);
  EXPECT_THAT(*files_.List(store->directory()), ElementsAre("00000000000000000001.vpt"));
}

TEST_F(FullDisk, SpoolKeepsChunksInMemoryAndWritesThemLater) {
  const auto spool = OpenSpool(1000);
  files_.SetCapacity(chunk_bytes_);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) Add(*spool, sequence);
  EXPECT_TRUE(absl::IsResourceExhausted(spool->disk_status())) << spool->disk_status();
  EXPECT_EQ(spool->stats().memory_bytes, 2 * chunk_bytes_);
  EXPECT_EQ(spool->stats().disk_bytes, chunk_bytes_);
  EXPECT_EQ(All(*spool), "ccc");
  files_.SetCapacity(10'000);
  Add(*spool, 4);
  EXPECT_TRUE(spool->disk_status().ok()) << spool->disk_status();
  EXPECT_EQ(spool->stats().memory_bytes, 0);
  EXPECT_EQ(All(*spool), "cccc");
  EXPECT_EQ(spool->stats().lost_chunks, 0);
}

TEST_F(FullDisk, SpoolDropsTheOldestThatIsInMemoryAlone) {
  const auto spool = OpenSpool(2 * chunk_bytes_);
  Add(*spool, 1);
  files_.FailAll(EROFS);
  for (uint64_t sequence = 2; sequence <= 5; ++sequence) Add(*spool, sequence);
  EXPECT_EQ(All(*spool), "cllcc");
  EXPECT_EQ(spool->stats().lost_chunks, 2);
  EXPECT_FALSE(spool->disk_status().ok());
}

TEST_F(FullDisk, ChunkThatIsLargerThanTheSpoolStaysInMemory) {
  const StreamChunk large = MakeChunk(kFullStream, 1, 1, 500);
  auto spool = Spool::Open(
      files_,
      {.directory = "/d/s", .max_disk_bytes = 400, .max_memory_bytes = large.bytes.size() + 50});
  ASSERT_TRUE(spool.ok()) << spool.status();
  (*spool)->Add(large.header, large.bytes);
  Add(**spool, 2);
  EXPECT_EQ(All(**spool), "cc");
  EXPECT_TRUE((*spool)->disk_status().ok());
  EXPECT_EQ((*spool)->stats().memory_bytes, large.bytes.size());
  const StreamChunk next = MakeChunk(kFullStream, 3, 3, 500);
  (*spool)->Add(next.header, next.bytes);
  EXPECT_EQ(All(**spool), "lcc") << "the older one had to go";
}

TEST_F(FullDisk, SpoolTriesAgainToRemoveWhatWasAcknowledged) {
  const auto spool = OpenSpool(1000);
  Add(*spool, 1);
  files_.FailAll(EIO);
  spool->Acknowledge(kFullStream, 1);
  EXPECT_EQ(spool->stats().disk_bytes, chunk_bytes_) << "it is still there";
  files_.FailAll(std::nullopt);
  Add(*spool, 2);
  EXPECT_EQ(spool->stats().disk_bytes, chunk_bytes_);
  EXPECT_EQ(files_.BytesBelow("/d/s"), chunk_bytes_);
}

TEST_F(FullDisk, SpoolSaysWhyItCannotBeOpened) {
  files_.FailAll(EROFS);
  const auto spool = Spool::Open(files_, {.directory = "/d/s"});
  ASSERT_FALSE(spool.ok());
  EXPECT_THAT(std::string(spool.status().message()), HasSubstr("the spool in /d/s: "));
}

}  // namespace
}  // namespace vcpulse::stream

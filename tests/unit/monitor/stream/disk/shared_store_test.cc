#include "monitor/stream/disk/shared_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "monitor/timeline/chunk_encoder.h"
#include "tests/fakes/crashing_files.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSharedNow_ns = 1'795'328'000'000'000'000;
const timeline::StreamId kShared = StreamNumber(7);

class SharedStoreTest : public testing::Test {
 protected:
  SharedStoreTest() : folder_(fakes::MakeTemporaryFolder()), directory_(folder_ + "/a/stream") {}
  ~SharedStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SharedStore> Open(const StreamStore::Options& options = {}) {
    auto store = SharedStore::Open(KernelFiles(), directory_, options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  // False where it is there already.
  static bool Take(SharedStore& store, uint64_t first, uint64_t last,
                   int64_t now_ns = kSharedNow_ns) {
    const StreamChunk chunk = MakeChunk(kShared, first, last);
    if (store.Holds(chunk.header, last)) return false;
    const absl::Status status = store.Append(chunk.header, last, chunk.bytes, now_ns);
    EXPECT_TRUE(status.ok()) << status;
    return true;
  }
  static bool TakeLost(SharedStore& store, uint64_t first, uint64_t last) {
    v1::LostRecords lost;
    lost.set_first_sequence(first);
    lost.set_last_sequence(last);
    const std::vector<uint8_t> bytes = timeline::EncodeLostChunk(kShared, lost);
    const auto header = timeline::DecodeChunkHeader(bytes);
    EXPECT_TRUE(header.ok());
    if (store.Holds(*header, last)) return false;
    EXPECT_TRUE(store.Append(*header, last, bytes, kSharedNow_ns).ok());
    return true;
  }
  std::vector<std::string> Names() const { return *KernelFiles().List(directory_); }

  std::string folder_;
  std::string directory_;
};

TEST_F(SharedStoreTest, TakesChunksInAnyOrderAndEachOnce) {
  auto store = Open();
  EXPECT_TRUE(Take(*store, 21, 30));
  EXPECT_TRUE(Take(*store, 1, 10));
  EXPECT_FALSE(Take(*store, 21, 30));
  EXPECT_TRUE(Take(*store, 11, 20));
  EXPECT_FALSE(Take(*store, 11, 20));
  ASSERT_TRUE(store->Sync().ok());
  EXPECT_THAT(Names(), ElementsAre("00000000000000000021.vpt"));
  store = Open();
  EXPECT_FALSE(Take(*store, 1, 10));
  EXPECT_FALSE(Take(*store, 11, 20));
  EXPECT_TRUE(Take(*store, 31, 40));  // into the file that is there
  ASSERT_TRUE(store->Sync().ok());
  EXPECT_THAT(Names(), ElementsAre("00000000000000000021.vpt"));
  EXPECT_FALSE(Take(*Open(), 31, 40));
}

TEST_F(SharedStoreTest, GoesOnInItsFileAfterARest) {
  auto store = Open();
  EXPECT_TRUE(Take(*store, 1, 10));
  store->Rest();  // nothing is synced: it stays open
  EXPECT_TRUE(store->is_open());
  ASSERT_TRUE(store->Sync().ok());
  store->Rest();
  EXPECT_FALSE(store->is_open());
  EXPECT_FALSE(Take(*store, 1, 10));
  EXPECT_TRUE(Take(*store, 11, 20));
  ASSERT_TRUE(store->Sync().ok());
  EXPECT_THAT(Names(), ElementsAre("00000000000000000001.vpt"));
  store->Rest();
  std::filesystem::remove(directory_ + "/00000000000000000001.vpt");
  EXPECT_TRUE(Take(*store, 21, 30));  // somebody removed it: a new one
  EXPECT_THAT(Names(), ElementsAre("00000000000000000021.vpt"));
}

TEST_F(SharedStoreTest, ALossIsKnownByRecordsAndLossesTogether) {
  auto store = Open();
  EXPECT_TRUE(Take(*store, 1, 10));
  EXPECT_TRUE(TakeLost(*store, 11, 20));
  EXPECT_FALSE(TakeLost(*store, 11, 20));
  EXPECT_FALSE(TakeLost(*store, 5, 15));
  EXPECT_TRUE(TakeLost(*store, 15, 25));
  // Records that were told to be lost, and come all the same, are stored.
  EXPECT_TRUE(Take(*store, 11, 20));
  ASSERT_TRUE(store->Sync().ok());
  store = Open();
  EXPECT_FALSE(TakeLost(*store, 1, 25));
  EXPECT_TRUE(Take(*store, 21, 25));
}

TEST_F(SharedStoreTest, BeginsAnotherFileWhereItIsLargeOrOld) {
  auto store = Open({.rotate_bytes = 1, .rotate_ns = 1'000'000'000'000'000'000});
  EXPECT_TRUE(Take(*store, 1, 10));
  EXPECT_TRUE(Take(*store, 11, 20));
  store = Open({.rotate_bytes = 1u << 30, .rotate_ns = 1'000});
  EXPECT_TRUE(Take(*store, 21, 30));
  EXPECT_TRUE(Take(*store, 31, 40, kSharedNow_ns + 999));
  EXPECT_TRUE(Take(*store, 41, 50, kSharedNow_ns + 1'000));
  ASSERT_TRUE(store->Sync().ok());
  EXPECT_THAT(Names(), ElementsAre("00000000000000000001.vpt", "00000000000000000011.vpt",
                                   "00000000000000000041.vpt"));
}

TEST_F(SharedStoreTest, ANameThatIsTakenGivesWayToTheNextOne) {
  auto store = Open({.rotate_bytes = 1});
  EXPECT_TRUE(Take(*store, 1, 10));
  EXPECT_TRUE(Take(*store, 1, 20));  // an agent that cut its chunks anew
  EXPECT_THAT(Names(), ElementsAre("00000000000000000001.vpt", "00000000000000000002.vpt"));
}

TEST_F(SharedStoreTest, CutsATornEndOffAndTakesItsChunkAgain) {
  auto store = Open();
  EXPECT_TRUE(Take(*store, 1, 10));
  EXPECT_TRUE(Take(*store, 11, 20));
  ASSERT_TRUE(store->Sync().ok());
  store.reset();
  const std::string path = directory_ + "/00000000000000000001.vpt";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  store = Open();
  EXPECT_THAT(store->notice(), HasSubstr("were not whole and are cut off"));
  EXPECT_FALSE(Take(*store, 1, 10));
  EXPECT_TRUE(Take(*store, 11, 20));
}

// A disk that fails at any operation, and a machine that crashes then: what Sync said is durable is
// held by whoever opens the store next, and is there; the rest can be taken again.
TEST(SharedStoreCrash, WhatWasSyncedIsThere) {
  constexpr uint64_t kChunks = 20;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    fakes::CrashingFiles files(seed);
    ASSERT_TRUE(files.MakeDirectories("/d").ok());  // a collector has made it before
    std::set<uint64_t> durable;
    for (int life = 0; life < 3; ++life) {
      auto store = SharedStore::Open(files, "/d/a/stream", {.rotate_bytes = 300});
      ASSERT_TRUE(store.ok()) << store.status() << " seed " << seed;
      const auto file_system = files.OpenFileSystem("/d");
      ASSERT_TRUE(file_system.ok());
      files.FailNth(static_cast<int>(random() % 40 + 1), EIO);
      std::set<uint64_t> taken;
      for (int step = 0; step < 15; ++step) {
        const uint64_t first = random() % kChunks * 10 + 1;
        const StreamChunk chunk = MakeChunk(kShared, first, first + 9);
        const bool is_known = (*store)->Holds(chunk.header, first + 9);
        ASSERT_EQ(is_known, durable.contains(first) || taken.contains(first)) << "seed " << seed;
        // After a chunk that failed a collector still syncs those before it.
        if (is_known ||
            (*store)->Append(chunk.header, first + 9, chunk.bytes, kSharedNow_ns).ok()) {
          taken.insert(first);
          if (random() % 3 != 0) continue;
        }
        const bool at_once = random() % 2 == 0;  // as a collector does for many files
        if (at_once) {
          if (const absl::Status all = (*file_system)->Sync(); !all.ok()) {
            (*store)->GiveUpUnsynced(all);
          }
        }
        if (!(at_once ? (*store)->NoteSynced() : (*store)->Sync()).ok()) break;
        durable.insert(taken.begin(), taken.end());
      }
      store->reset();
      files.Crash();
      auto again = SharedStore::Open(files, "/d/a/stream", {});
      ASSERT_TRUE(again.ok()) << again.status() << " seed " << seed;
      for (const uint64_t first : durable) {
        EXPECT_TRUE((*again)->Holds(MakeChunk(kShared, first, first + 9).header, first + 9))
            << "seed " << seed;
      }
      // A crash may leave more than was synced.
      for (uint64_t first = 1; first < kChunks * 10; first += 10) {
        if ((*again)->Holds(MakeChunk(kShared, first, first + 9).header, first + 9)) {
          durable.insert(first);
        }
      }
    }
  }
}

}  // namespace
}  // namespace vcpulse::stream

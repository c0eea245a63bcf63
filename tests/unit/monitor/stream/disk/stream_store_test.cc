#include "monitor/stream/disk/stream_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "monitor/stream/disk/chunk_list.h"
#include "tests/fakes/crashing_files.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/unit/fixtures/timeline_fixture.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr int64_t kNow_ns = 1'795'328'000 * kSecond_ns;  // 2026-11-22T06:13:20Z
const timeline::StreamId kStream = StreamNumber(7);

class StreamStoreTest : public testing::Test {
 protected:
  StreamStoreTest() : folder_(fakes::MakeTemporaryFolder()), agent_(folder_ + "/host1") {}
  ~StreamStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<StreamStore> Open(const StreamStore::Options& options = {},
                                    uint64_t first_held = 1) {
    auto store =
        StreamStore::Open(KernelFiles(), agent_ + "/stream", kStream, options, first_held, kNow_ns);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  static void Append(StreamStore& store, uint64_t first, uint64_t last, int64_t now_ns = kNow_ns) {
    const StreamChunk chunk = MakeChunk(kStream, first, last);
    const absl::Status status = store.Append(chunk.header, chunk.bytes, now_ns);
    EXPECT_TRUE(status.ok()) << status;
  }
  // Three chunks of ten records, synced, in a file of which the path is given.
  std::string ThreeChunks() {
    const auto store = Open();
    for (const uint64_t first : {1, 11, 21}) Append(*store, first, first + 9);
    EXPECT_TRUE(store->Sync().ok());
    return store->directory() + "/00000000000000000001.vpt";
  }
  static std::vector<std::string> NamesIn(const std::string& directory) {
    return *KernelFiles().List(directory);
  }
  static void Overwrite(const std::string& path, uint64_t offset, const std::string& bytes) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }

  std::string folder_;
  std::string agent_;
};

TEST_F(StreamStoreTest, MakesItsFolderWithTheFirstChunk) {
  const auto store = Open();
  EXPECT_FALSE(std::filesystem::exists(agent_)) << "nothing is made before there is a chunk";
  Append(*store, 1, 3);
  EXPECT_THAT(NamesIn(store->directory()), ElementsAre("00000000000000000001.vpt"));
}

TEST_F(StreamStoreTest, WrittenIsNotDurableBeforeSync) {
  const auto store = Open();
  EXPECT_EQ(store->written(), 0);
  Append(*store, 1, 3);
  EXPECT_EQ(store->written(), 3);
  EXPECT_EQ(store->durable(), 0);
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->durable(), 3);
  EXPECT_EQ(store->bytes_written(), MakeChunk(kStream, 1, 3).bytes.size());
}

TEST_F(StreamStoreTest, GoesOnWhereItEnded) {
  ThreeChunks();
  const auto store = Open();
  EXPECT_EQ(store->durable(), 30);
  EXPECT_EQ(store->written(), 30);
  EXPECT_THAT(store->notice(), IsEmpty());
  Append(*store, 31, 40);
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(1, 40));
  EXPECT_THAT(NamesIn(agent_), testing::SizeIs(1));
}

TEST_F(StreamStoreTest, LostRecordsAreSettledAndCounted) {
  const auto store = Open();
  EXPECT_TRUE(store->AppendLost(LostSpan(1, 50), kNow_ns).ok());
  Append(*store, 51, 60);
  EXPECT_TRUE(store->AppendLost(LostSpan(61, 70), kNow_ns).ok());
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->durable(), 70);
  const auto again = Open();
  EXPECT_EQ(again->durable(), 70);
  Append(*again, 71, 72);
  const ReadBack back = ReadSequences(store->directory());
  EXPECT_EQ(back.sequences.size(), 12);
  EXPECT_EQ(back.report.lost_records, 60);
  EXPECT_THAT(back.report.damages, IsEmpty());
}

TEST_F(StreamStoreTest, CutsOffATornEnd) {
  const std::string path = ThreeChunks();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const auto store = Open();
  EXPECT_EQ(store->durable(), 20);
  EXPECT_THAT(store->notice(), HasSubstr("cut off"));
  Append(*store, 21, 22);
  const ReadBack back = ReadSequences(store->directory());
  EXPECT_EQ(back.sequences, Sequences(1, 22));
  EXPECT_THAT(back.report.damages, IsEmpty());
  EXPECT_THAT(NamesIn(store->directory()), testing::SizeIs(1));
}

// The agent has nothing left of what was acknowledged.
TEST_F(StreamStoreTest, LosesTheDamagedChunkAlone) {
  const std::string path = ThreeChunks();
  Overwrite(path, MakeChunk(kStream, 1, 10).bytes.size() + 100, "damage");
  const uint64_t size = std::filesystem::file_size(path);
  const auto store = Open({}, 31);
  EXPECT_EQ(store->durable(), 30);
  EXPECT_THAT(store->notice(), HasSubstr("damaged"));
  EXPECT_EQ(std::filesystem::file_size(path), size);
  Append(*store, 31, 32);
  std::vector<uint64_t> expected = Sequences(1, 10);
  std::ranges::copy(Sequences(21, 32), std::back_inserter(expected));
  EXPECT_EQ(ReadSequences(store->directory()).sequences, expected);
}

// It was not told of any of them, or did not yet take note.
TEST_F(StreamStoreTest, CutsOffWhatTheAgentCanSendAgain) {
  const std::string path = ThreeChunks();
  const uint64_t chunk_bytes = MakeChunk(kStream, 1, 10).bytes.size();
  Overwrite(path, chunk_bytes + 100, "damage");
  EXPECT_EQ(Open({}, 11)->durable(), 10);
  EXPECT_EQ(std::filesystem::file_size(path), chunk_bytes);
}

TEST_F(StreamStoreTest, KeepsOneDamageAndCutsAtTheNext) {
  const std::string path = ThreeChunks();
  const uint64_t chunk_bytes = MakeChunk(kStream, 1, 10).bytes.size();
  Overwrite(path, 100, "damage");
  Append(*Open({}, 31), 31, 40);
  Overwrite(path, 2 * chunk_bytes + 100, "damage");
  const auto store = Open({}, 21);
  EXPECT_EQ(store->durable(), 20);
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(11, 20));
}

// What the damaged chunk held is not the stream's.
TEST_F(StreamStoreTest, AnotherStreamsChunkBehindDamageDoesNotCount) {
  const auto store = Open();
  Append(*store, 1, 10);
  EXPECT_TRUE(store->Sync().ok());
  const StreamChunk other = MakeChunk(StreamNumber(9), 500, 510);
  std::ofstream file(store->directory() + "/00000000000000000001.vpt",
                     std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(other.bytes.data()),
             static_cast<std::streamsize>(other.bytes.size()));
  file.close();
  EXPECT_EQ(Open({}, 11)->durable(), 10);
}

// An empty file tells by its name how far the stream had come.
TEST_F(StreamStoreTest, NameOfAnEmptyFileCounts) {
  const std::string path = ThreeChunks();
  std::filesystem::remove(path);
  std::ofstream(std::filesystem::path(path).parent_path() / "00000000000000000031.vpt");
  const auto store = Open();
  EXPECT_EQ(store->durable(), 30);
  Append(*store, 31, 32);
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(31, 32));
}

TEST_F(StreamStoreTest, EmptyFileBehindAFullOneIsUsed) {
  const std::string path = ThreeChunks();
  std::ofstream(std::filesystem::path(path).parent_path() / "00000000000000000031.vpt");
  const auto store = Open();
  EXPECT_EQ(store->durable(), 30);
  Append(*store, 31, 32);
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(1, 32));
  EXPECT_THAT(NamesIn(store->directory()), testing::SizeIs(2));
}

TEST_F(StreamStoreTest, RotatesBySize) {
  const uint64_t chunk_bytes = MakeChunk(kStream, 1, 10).bytes.size();
  const auto store = Open({.rotate_bytes = 2 * chunk_bytes});
  for (uint64_t first = 1; first < 50; first += 10) Append(*store, first, first + 9);
  EXPECT_THAT(NamesIn(store->directory()),
              ElementsAre("00000000000000000001.vpt", "00000000000000000021.vpt",
                          "00000000000000000041.vpt"));
  EXPECT_EQ(store->durable(), 40) << "a file is synced before it is left";
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(1, 50));
}

TEST_F(StreamStoreTest, RotatesByTimeWhateverTheClockDoes) {
  const auto store = Open({.rotate_ns = 100 * kSecond_ns});
  const auto files = [&] { return NamesIn(store->directory()).size(); };
  Append(*store, 1, 1, kNow_ns);
  Append(*store, 2, 2, kNow_ns + 99 * kSecond_ns);
  EXPECT_EQ(files(), 1);
  Append(*store, 3, 3, kNow_ns + 100 * kSecond_ns);
  EXPECT_EQ(files(), 2);
  const int64_t back_ns = kNow_ns - 1'000'000 * kSecond_ns;
  Append(*store, 4, 4, back_ns);
  Append(*store, 5, 5, back_ns + 99 * kSecond_ns);
  EXPECT_EQ(files(), 2);
  Append(*store, 6, 6, back_ns + 100 * kSecond_ns);
  EXPECT_EQ(files(), 3) << "a clock that was set back must not keep a file open";
  EXPECT_EQ(ReadSequences(store->directory()).sequences, Sequences(1, 6));
}

// However often the agent comes again in the meantime.
TEST(StreamStoreAges, RotatesByTheAgeOfTheFileNotOfTheConnection) {
  fakes::CrashingFiles files;
  const StreamStore::Options options{.rotate_ns = 100 * kSecond_ns};
  std::string directory;
  const auto append_at = [&](uint64_t sequence, int64_t now_ns) {
    files.SetTime(now_ns);
    const auto store =
        StreamStore::Open(files, "/collected/host1/s", kStream, options, sequence, now_ns);
    ASSERT_TRUE(store.ok()) << store.status();
    const StreamChunk chunk = MakeChunk(kStream, sequence, sequence);
    EXPECT_TRUE((*store)->Append(chunk.header, chunk.bytes, now_ns).ok());
    EXPECT_TRUE((*store)->Sync().ok());
    directory = (*store)->directory();
  };
  append_at(1, kNow_ns);
  append_at(2, kNow_ns + 40 * kSecond_ns);
  append_at(3, kNow_ns + 80 * kSecond_ns);
  EXPECT_THAT(*files.List(directory), testing::SizeIs(1));
  append_at(4, kNow_ns + 120 * kSecond_ns);
  EXPECT_THAT(*files.List(directory), testing::SizeIs(2));
  append_at(5, kNow_ns + 160 * kSecond_ns);
  EXPECT_THAT(*files.List(directory), testing::SizeIs(2));
}

// A disk that counts what is read of it.
class CountedFiles : public fakes::CrashingFiles {
 public:
  absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                std::span<uint8_t> out) override {
    asked_ += out.size();
    return CrashingFiles::ReadAt(path, offset, out);
  }
  uint64_t asked() const { return asked_; }

 private:
  uint64_t asked_ = 0;
};

// What a collector recovers is read through a window: not one for each place that a header names.
TEST(ChunkListTest, OverlappingHeadersAreReadInLinearTime) {
  // Just inside of the window, and beyond it.
  for (const uint32_t claimed : {(1u << 20) - 100, 1'500'000u}) {
    SCOPED_TRACE(claimed);
    CountedFiles files;
    const timeline::Bytes file = timeline::OverlappingHeaders(30'000, claimed);
    files.Put("/s/1.vpt", file);
    const auto list = ListChunks(files, "/s/1.vpt");
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(list->file_bytes, file.size());
    EXPECT_LT(files.asked(), 4 * uint64_t{timeline::kMaxPayloadBytes} + 40 * file.size());
  }
}

}  // namespace
}  // namespace vcpulse::stream

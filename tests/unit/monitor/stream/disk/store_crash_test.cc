// The collector's timelines when its machine crashes, again and again, at random.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <random>

#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/stream_store.h"
#include "tests/fakes/crashing_files.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

constexpr int kSeeds = 1000;
constexpr int kLives = 5;
constexpr char kStoreFolder[] = "/c/host1/s";

// An agent that sends from durable() + 1 on, a collector that dies, and what it promised.
class CrashingStore {
 public:
  explicit CrashingStore(uint32_t seed) : random_(seed), files_(seed + 1) {
    EXPECT_TRUE(files_.MakeDirectories("/c").ok());
  }

  void Run() {
    for (int life = 0; life < kLives && !testing::Test::HasFailure(); ++life) Live();
    files_.FailNothing();
    Open();
    CheckFiles();
  }

  uint64_t promised() const { return promised_; }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Open() {
    store_.reset();
    auto store =
        StreamStore::Open(files_, kStoreFolder, stream_, {.rotate_bytes = 600, .rotate_ns = 1000},
                          promised_ + 1, now_ns_);
    if (!store.ok() && failing_) {  // once more, with a disk that works
      files_.FailNothing();
      store = StreamStore::Open(files_, kStoreFolder, stream_,
                                {.rotate_bytes = 600, .rotate_ns = 1000}, promised_ + 1, now_ns_);
    }
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    EXPECT_EQ(store_->durable(), store_->written());
    EXPECT_GE(store_->durable(), promised_) << "what was acknowledged is gone";
    promised_ = store_->durable();
  }

  void Live() {
    failing_ = Below(3) == 0;
    if (failing_ && Below(2) == 0) FailSometime();
    Open();
    if (store_ == nullptr) return;
    CheckFiles();
    for (uint64_t steps = Below(30); steps > 0; --steps) {
      Step();
      EXPECT_GE(store_->durable(), promised_);
      EXPECT_GE(store_->written(), store_->durable());
      promised_ = store_->durable();
    }
    files_.FailNothing();
    if (Below(4) == 0) {
      store_.reset();  // the process alone is killed
    } else {
      files_.Crash();
    }
  }

  void FailSometime() {
    files_.FailNth(static_cast<int>(1 + Below(12)), Below(2) == 0 ? EIO : ENOSPC);
  }

  void Step() {
    now_ns_ += static_cast<int64_t>(Below(300));
    if (Below(20) == 0) now_ns_ -= 100'000;
    if (failing_ && Below(6) == 0) FailSometime();
    const uint64_t before = store_->written();
    const uint64_t first = before + 1;
    const uint64_t last = first + Below(5);
    absl::Status status;
    switch (Below(8)) {
      case 0:
      case 1:
        status = store_->Sync();
        if (status.ok()) {
          EXPECT_EQ(store_->durable(), store_->written());
        }
        break;
      case 2:
        status = store_->AppendLost(LostSpan(first, last), now_ns_);
        if (status.ok()) {
          EXPECT_EQ(store_->written(), last);
        }
        break;
      default:
        const StreamChunk chunk = MakeChunk(stream_, first, last, Below(200));
        status = store_->Append(chunk.header, chunk.bytes, now_ns_);
        if (status.ok()) {
          EXPECT_EQ(store_->written(), last);
        }
        break;
    }
    if (!status.ok()) {
      EXPECT_TRUE(failing_) << status;
      EXPECT_TRUE(store_->written() == before || store_->written() == store_->durable());
    }
  }

  // All files, one behind the other, hold each record up to written() once, as itself or as lost.
  void CheckFiles() {
    std::vector<uint8_t> all;
    uint64_t next = 1;
    uint64_t records = 0;
    for (const std::string& path : files_.Paths()) {
      if (!path.ends_with(".vpt")) continue;
      const std::vector<uint8_t> bytes = files_.Get(path);
      all.insert(all.end(), bytes.begin(), bytes.end());
      const auto list = ListChunks(files_, path);
      ASSERT_TRUE(list.ok()) << list.status();
      EXPECT_EQ(list->good_bytes, list->file_bytes) << path;
      for (const ChunkPlace& chunk : list->chunks) {
        EXPECT_EQ(chunk.header.first_sequence, next) << path;
        if (chunk.header.last_sequence >= chunk.header.first_sequence) {
          records += chunk.header.last_sequence - chunk.header.first_sequence + 1;
        }
        next = chunk.settles_to + 1;
      }
    }
    EXPECT_EQ(next, store_->written() + 1);
    if (all.empty()) return;
    ReadBack back;
    const auto report = timeline::ReadTimelineBytes(all, SinkOfSequences(&back));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->damages.empty());
    EXPECT_EQ(back.sequences.size(), records);
    EXPECT_TRUE(std::ranges::is_sorted(back.sequences, std::less_equal<>()));
  }

  const timeline::StreamId stream_ = StreamNumber(7);
  std::mt19937 random_;
  fakes::CrashingFiles files_;
  std::unique_ptr<StreamStore> store_;
  int64_t now_ns_ = 1'000'000'000'000'000'000;
  bool failing_ = false;
  uint64_t promised_ = 0;
};

TEST(StoreCrashes, NothingThatWasDurableIsLostOrDoubled) {
  uint64_t promised = 0;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashingStore store(seed);
    store.Run();
    promised += store.promised();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(promised, 20 * kSeeds) << "the runs are too short to say anything";
}

}  // namespace
}  // namespace vcpulse::stream

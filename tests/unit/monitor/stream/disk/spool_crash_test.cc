// The agent's spool under random use, full disks and crashes of its machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <random>

#include "monitor/stream/disk/spool.h"
#include "tests/fakes/crashing_files.h"
#include "tests/unit/monitor/stream/protocol/chunk.h"

namespace vcpulse::stream {
namespace {

constexpr int kSpoolSeeds = 1000;
constexpr char kSpoolFolder[] = "/var/spool";

// Uses a spool and remembers what it was given.
class CrashingSpool {
 public:
  // A roomy one drops nothing, and its disk does not fail.
  CrashingSpool(uint32_t seed, bool is_roomy)
      : random_(seed), files_(seed + 1), is_roomy_(is_roomy) {
    options_.directory = kSpoolFolder;
    options_.max_disk_bytes = is_roomy ? 1u << 20 : 1500 + Below(10'000);
    options_.max_memory_bytes = is_roomy && Below(2) == 0 ? 1u << 20 : Below(6000);
    options_.segment_bytes = Below(3) == 0 ? 0 : 300 + Below(2000);
  }

  void Run() {
    for (int life = 0; life < 5; ++life) {
      Live();
      if (testing::Test::HasFailure()) return;
    }
  }
  uint64_t chunks_given() const { return chunks_given_; }

 private:
  // What the agent knows of one of its streams.
  struct Sent {
    std::map<uint64_t, StreamChunk> chunks;  // by first sequence
    uint64_t next = 1;
    uint64_t acknowledged = 0;
    uint64_t synced = 0;  // what was added before the last sync
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  void Live() {
    auto spool = Spool::Open(files_, options_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    CheckBound();
    for (const timeline::StreamId& stream : spool_->streams()) {
      ASSERT_TRUE(sent_.contains(stream));
      Walk(stream);
      EXPECT_LE(spool_->range(stream).next_sequence, sent_[stream].next);
    }
    if (is_roomy_) CheckNothingSyncedIsGone();
    const auto lives = static_cast<uint8_t>(++streams_);
    stream_ = StreamNumber(lives);  // a new recording
    for (uint64_t steps = 5 + Below(60); steps > 0 && !testing::Test::HasFailure(); --steps) Step();
    files_.FailNothing();
    files_.SetCapacity(1u << 30);
    crashed_ = Below(3) != 0;
    if (crashed_) files_.Crash();
    spool_.reset();
  }

  void Step() {
    if (!is_roomy_ && Below(10) == 0) {
      files_.FailNth(static_cast<int>(1 + Below(6)), Below(2) == 0 ? EIO : ENOSPC);
    }
    if (!is_roomy_ && Below(20) == 0) {
      files_.SetCapacity(Below(2) == 0 ? 1u << 30 : Below(4000));
    }
    switch (Below(10)) {
      case 0:
        spool_->Sync();
        if (is_roomy_) {
          EXPECT_TRUE(spool_->disk_status().ok());
          for (auto& [id, sent] : sent_) sent.synced = sent.next - 1;
        }
        break;
      case 1:
      case 2:
        Acknowledge();
        break;
      case 3:
        AddLost();
        break;
      default:
        AddChunk();
        break;
    }
    CheckBound();
    if (Below(5) == 0) {
      for (const timeline::StreamId& stream : spool_->streams()) Walk(stream);
    }
    if (sent_.contains(stream_)) {
      EXPECT_EQ(spool_->range(stream_).next_sequence, sent_[stream_].next);
    }
  }

  void AddChunk() {
    Sent& sent = sent_[stream_];
    const uint64_t last = sent.next + Below(4);
    const StreamChunk chunk = MakeChunk(stream_, sent.next, last, Below(400));
    spool_->Add(chunk.header, chunk.bytes);
    sent.chunks[sent.next] = chunk;
    sent.next = last + 1;
  }

  void AddLost() {
    Sent& sent = sent_[stream_];
    const uint64_t last = sent.next + Below(4);
    spool_->AddLost(stream_, LostSpan(sent.next, last, v1::LostRecords::REASON_AGENT_BUSY));
    sent.next = last + 1;
  }

  // As a collector does: up to the end of something that it was sent.
  void Acknowledge() {
    const auto streams = spool_->streams();
    if (streams.empty()) return;
    const timeline::StreamId stream = streams[Below(streams.size())];
    uint64_t durable = sent_[stream].acknowledged;
    for (uint64_t items = 1 + Below(4); items > 0; --items) {
      const auto item = spool_->At(stream, durable + 1);
      if (!item) break;
      durable = item->is_lost ? item->lost.last_sequence() : item->header.last_sequence;
    }
    sent_[stream].acknowledged = durable;
    spool_->Acknowledge(stream, durable);
  }

  // Every record behind the acknowledged ones comes once, in order, as itself or as lost.
  void Walk(const timeline::StreamId& stream) {
    const Sent& sent = sent_[stream];
    uint64_t sequence = sent.acknowledged + 1;
    while (const auto item = spool_->At(stream, sequence)) {
      if (item->is_lost) {
        ASSERT_EQ(item->lost.first_sequence(), sequence);
        ASSERT_GE(item->lost.last_sequence(), sequence);
        sequence = item->lost.last_sequence() + 1;
        continue;
      }
      ASSERT_EQ(item->header.first_sequence, sequence);
      const auto original = sent.chunks.find(sequence);
      ASSERT_NE(original, sent.chunks.end());
      ASSERT_TRUE(std::ranges::equal(item->bytes, original->second.bytes));
      sequence = item->header.last_sequence + 1;
      ++chunks_given_;
    }
    EXPECT_EQ(sequence, std::max(spool_->range(stream).next_sequence, sent.acknowledged + 1));
  }

  void CheckBound() {
    const uint64_t on_disk = files_.BytesBelow(kSpoolFolder);
    ASSERT_LE(on_disk, options_.max_disk_bytes);
    ASSERT_EQ(on_disk, spool_->stats().disk_bytes);
    ASSERT_LE(spool_->stats().memory_bytes, options_.max_memory_bytes);
  }

  // Chunks that were synced, or on disk when the process alone died, are all there.
  void CheckNothingSyncedIsGone() {
    for (auto& [stream, sent] : sent_) {
      if (!crashed_) sent.synced = sent.next - 1;  // the process alone died
      std::erase_if(sent.chunks, [&](const auto& entry) {
        const auto& [first, chunk] = entry;
        if (first <= sent.acknowledged) return false;
        const auto item = spool_->At(stream, first);
        const bool is_there = item && !item->is_lost;
        EXPECT_TRUE(is_there || chunk.header.last_sequence > sent.synced) << first;
        return !is_there;  // what a crash took does not come back
      });
    }
  }

  std::mt19937 random_;
  fakes::CrashingFiles files_;
  const bool is_roomy_;
  Spool::Options options_;
  std::unique_ptr<Spool> spool_;
  std::map<timeline::StreamId, Sent> sent_;
  timeline::StreamId stream_{};
  int streams_ = 0;
  bool crashed_ = false;
  uint64_t chunks_given_ = 0;
};

void RunSpools(bool is_roomy) {
  uint64_t chunks = 0;
  for (uint32_t seed = 1; seed <= kSpoolSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashingSpool spool(seed, is_roomy);
    spool.Run();
    chunks += spool.chunks_given();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(chunks, 50 * kSpoolSeeds) << "the runs are too short to say anything";
}

TEST(SpoolCrashes, EachRecordComesOnceAsItselfOrAsLost) { RunSpools(false); }

TEST(SpoolCrashes, NothingSyncedIsLostWhileThereIsRoom) { RunSpools(true); }

}  // namespace
}  // namespace vcpulse::stream

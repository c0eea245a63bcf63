// An agent and a collector with a network between them that does what networks do, and worse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/uplink.h"
#include "tests/fakes/chaos_proxy.h"
#include "tests/fakes/streamed_chunks.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {
namespace {

using fakes::Chunk;
using fakes::Mischief;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr timeline::StreamId kStream = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// A folder of its own, gone at the end.
class ChaosFolder {
 public:
  ~ChaosFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ = fakes::MakeTemporaryFolder();
};

Address UnixAddress(const std::string& path) {
  return {.kind = Address::Kind::kUnix, .path = path};
}

std::unique_ptr<Collector> StartChaosCollector(const ChaosFolder& folder) {
  Collector::Options options;
  options.listen = {UnixAddress(folder / "collector")};
  options.directory = folder / "collected";
  options.store.rotate_bytes = 20'000;
  auto collector = Collector::Start(options);
  EXPECT_TRUE(collector.ok()) << collector.status();
  return collector.ok() ? *std::move(collector) : nullptr;
}

Uplink::Options UplinkThrough(const ChaosFolder& folder) {
  Uplink::Options options;
  options.addresses = {UnixAddress(folder / "proxy")};
  options.identity = {.agent_id = "agent", .host_name = "host", .boot_id = "boot"};
  options.spool.directory = folder / "spool";
  options.first_backoff = milliseconds(1);
  options.longest_backoff = milliseconds(4);
  return options;
}

Mischief RandomMischief(std::mt19937_64& random) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  Mischief mischief;
  if (below(2) == 0) mischief.piece_bytes = 1 + below(400);
  if (below(4) == 0) mischief.delay_us = static_cast<uint32_t>(below(300));
  mischief.resets = below(2) == 0;
  const uint64_t place = below(3) == 0 ? below(400) : below(30'000);
  switch (below(6)) {
    case 0:
      mischief.close_after = place;
      break;
    case 1:
      mischief.corrupt_at = place;
      break;
    case 2:
      mischief.corrupt_back = below(600);
      break;
    case 3:
      mischief.repeat_at = place;
      break;
    case 4:
      mischief.stall_at = place;
      mischief.stall_ms = static_cast<uint32_t>(1 + below(10));
      break;
    default:
      break;  // splits and delays alone
  }
  return mischief;
}

// Each connection but the later ones meets something.
std::function<Mischief()> RandomNetwork(uint64_t seed) {
  auto random = std::make_shared<std::mt19937_64>(seed);
  auto left = std::make_shared<int>(1 + static_cast<int>((*random)() % 8));
  return [random, left] { return --*left >= 0 ? RandomMischief(*random) : Mischief{}; };
}

std::string HexOf(const timeline::StreamId& stream) {
  std::string hex;
  for (const uint8_t byte : stream) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

uint64_t LastSequence(const std::vector<Chunk>& chunks) {
  return fakes::HeaderOf(chunks.back()).last_sequence;
}

// Everything is there once, in order: as a chunk, byte for byte, or as a range that is told as
// lost.
void ExpectSettled(const fakes::Collected& collected, const std::vector<Chunk>& sent) {
  EXPECT_TRUE(collected.all_whole);
  uint64_t next = 1;
  size_t chunk = 0;
  size_t lost = 0;
  for (const Chunk& one : sent) {
    const timeline::ChunkHeader header = fakes::HeaderOf(one);
    while (lost < collected.lost.size() && collected.lost[lost].first == next) {
      next = collected.lost[lost++].last + 1;
    }
    if (next > header.last_sequence) continue;  // within what is lost
    ASSERT_LT(chunk, collected.chunks.size()) << "from record " << next << " on nothing is there";
    ASSERT_EQ(header.first_sequence, next);
    ASSERT_EQ(collected.chunks[chunk++], one) << "the chunk of record " << next;
    next = header.last_sequence + 1;
  }
  EXPECT_EQ(next, LastSequence(sent) + 1);
  EXPECT_EQ(chunk, collected.chunks.size()) << "chunks are there twice";
  EXPECT_EQ(lost, collected.lost.size());
}

class StreamChaos : public ::testing::TestWithParam<uint64_t> {};

constexpr uint64_t kRunsPerBatch = 50;

// One run: a random network, sometimes a spool that is too small, sometimes a collector that is
// replaced in the middle.
void RunChaos(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const ChaosFolder folder;
  auto collector = StartChaosCollector(folder);
  ASSERT_NE(collector, nullptr);
  const auto proxy =
      fakes::ChaosProxy::Start(folder / "proxy", folder / "collector", RandomNetwork(seed));
  Uplink::Options options = UplinkThrough(folder);
  const bool is_small = random() % 4 == 0;
  if (is_small) {
    options.spool.max_disk_bytes = 24 << 10;
    options.spool.segment_bytes = 4 << 10;
    options.spool.max_memory_bytes = 8 << 10;
  }
  auto uplink = Uplink::Start(options);
  ASSERT_TRUE(uplink.ok()) << uplink.status();
  const std::vector<Chunk> chunks = fakes::StreamedChunks(kStream, 5 + random() % 30, seed);
  const size_t replaced_at = random() % 3 == 0 ? random() % chunks.size() : chunks.size();
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (i == replaced_at) {
      collector.reset();
      collector = StartChaosCollector(folder);
      ASSERT_NE(collector, nullptr);
    }
    (*uplink)->Offer(chunks[i]);
  }
  const absl::Status finished = (*uplink)->Finish(seconds(30));
  ASSERT_TRUE(finished.ok()) << finished;
  const Uplink::Stats stats = (*uplink)->stats();
  // What was acknowledged is on disk now, not only when the collector has ended in order.
  const fakes::Collected collected = fakes::ReadCollected(folder / "collected");
  ExpectSettled(collected, chunks);
  if (!is_small) {
    EXPECT_TRUE(collected.lost.empty());
    EXPECT_EQ(collected.chunks.size(), chunks.size());
  }
  EXPECT_EQ(stats.waiting_chunks, 0U);
}

TEST_P(StreamChaos, EveryAcknowledgedChunkIsOnDiskOnceAndInOrder) {
  for (uint64_t run = 0; run < kRunsPerBatch; ++run) {
    RunChaos(GetParam() * kRunsPerBatch + run);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamChaos, ::testing::Range<uint64_t>(0, 20));

// The connection is closed behind every byte of Hello, Welcome, the chunks and their Ack.
TEST(StreamHandshake, MayBeCutBehindEveryByte) {
  const ChaosFolder folder;
  const auto collector = StartChaosCollector(folder);
  ASSERT_NE(collector, nullptr);
  std::mutex mutex;
  std::optional<uint64_t> cut;
  const auto proxy = fakes::ChaosProxy::Start(folder / "proxy", folder / "collector", [&] {
    const std::lock_guard lock(mutex);
    return Mischief{.close_after = std::exchange(cut, std::nullopt)};
  });
  Uplink::Options options = UplinkThrough(folder);
  options.spool.directory.clear();
  bool was_cut = true;
  uint64_t bytes = 0;
  for (; was_cut && bytes < 4096; ++bytes) {
    timeline::StreamId stream = kStream;
    stream[0] = static_cast<uint8_t>(bytes);
    stream[1] = static_cast<uint8_t>(bytes >> 8);
    const std::vector<Chunk> chunks = fakes::StreamedChunks(stream, 2, bytes, 40);
    {
      const std::lock_guard lock(mutex);
      cut = bytes;
    }
    const uint64_t before = proxy->connections();
    auto uplink = Uplink::Start(options);
    ASSERT_TRUE(uplink.ok()) << uplink.status();
    for (const Chunk& chunk : chunks) (*uplink)->Offer(chunk);
    ASSERT_TRUE((*uplink)->Finish(seconds(20)).ok()) << "cut behind byte " << bytes;
    was_cut = proxy->connections() > before + 1;
    std::string id = "*";
    for (const auto& agent : std::filesystem::directory_iterator(folder / "collected/agent")) {
      if (agent.path().string().ends_with(HexOf(stream))) id = agent.path().string();
    }
    ExpectSettled(fakes::ReadCollected(id), chunks);
  }
  // Far enough that both chunks were through and acknowledged before the cut.
  EXPECT_FALSE(was_cut);
  EXPECT_GT(bytes, 300U);
}

}  // namespace
}  // namespace vcpulse::stream

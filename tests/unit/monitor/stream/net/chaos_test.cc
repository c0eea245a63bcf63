// An agent and a collector with a network between them that does what networks do, and worse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"
#include "tests/fakes/certificates.h"
#include "tests/fakes/chaos_proxy.h"
#include "tests/unit/monitor/stream/net/followed.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

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

// Made once for the program.
const ChaosFolder& Certificates() {
  static const ChaosFolder folder;
  static const bool are_made = [] {
    const std::string at = folder.path().string();
    return fakes::MakeAuthority(at, "ca") &&
           fakes::MakeCertificate(at, "ca", "collector", "IP:127.0.0.1,IP:::1") &&
           fakes::MakeCertificate(at, "ca", "agent", "DNS:agent");
  }();
  EXPECT_TRUE(are_made);
  return folder;
}

CredentialFiles CredentialsOf(const std::string& name) {
  return {.certificate = Certificates() / (name + ".pem"),
          .key = Certificates() / (name + ".key"),
          .authorities = Certificates() / "ca.pem"};
}

Address UnixAddress(const std::string& path) {
  return {.kind = Address::Kind::kUnix, .path = path};
}

// What an agent reaches the collector by.
struct Way {
  Address::Kind kind = Address::Kind::kUnix;
  std::string host = "127.0.0.1";
};

// Of twenty runs two go over TLS, five over TCP.
Way WayOf(uint64_t seed) {
  const auto kind = seed % 20 < 2   ? Address::Kind::kTls
                    : seed % 20 < 7 ? Address::Kind::kTcp
                                    : Address::Kind::kUnix;
  return {.kind = kind, .host = seed % 2 == 0 ? "127.0.0.1" : "::1"};
}

// Listens on the unix socket `collector`, and on a free port where the way is another one.
std::unique_ptr<Collector> StartChaosCollector(const ChaosFolder& folder, const Way& way = {}) {
  Collector::Options options;
  options.listen = {UnixAddress(folder / "collector")};
  if (way.kind != Address::Kind::kUnix) {
    options.listen.push_back({.kind = way.kind, .host = way.host});
  }
  options.directory = folder / "collected";
  options.store.rotate_bytes = 20'000;
  if (way.kind == Address::Kind::kTls) {
    options.credentials = CredentialsOf("collector");
    // A length of TLS that was corrupted has no checksum: it is noticed once more bytes have come.
    options.limits.ping_after_ns = 200'000'000;
    options.limits.handshake_ns = 1'000'000'000;
  }
  auto collector = Collector::Start(options);
  EXPECT_TRUE(collector.ok()) << collector.status();
  return collector.ok() ? *std::move(collector) : nullptr;
}

Uplink::Options UplinkThrough(const fakes::ChaosProxy& proxy, const ChaosFolder& folder) {
  Uplink::Options options;
  options.addresses = {proxy.address()};
  if (proxy.address().kind == Address::Kind::kTls) options.credentials = CredentialsOf("agent");
  options.identity = {.agent_id = "agent", .host_name = "host", .boot_id = "boot"};
  options.spool.directory = folder / "spool";
  options.first_backoff = milliseconds(1);
  options.longest_backoff = milliseconds(4);
  return options;
}

// `handshake` is about the number of bytes that come before the first chunk.
Mischief RandomMischief(std::mt19937_64& random, uint64_t handshake) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  Mischief mischief;
  if (below(2) == 0) mischief.piece_bytes = 1 + below(400);
  if (below(4) == 0) mischief.delay_us = static_cast<uint32_t>(below(300));
  mischief.resets = below(2) == 0;
  const uint64_t place = below(3) == 0 ? below(handshake) : below(30'000);
  switch (below(6)) {
    case 0:
      mischief.close_after = place;
      break;
    case 1:
      mischief.corrupt_at = place;
      break;
    case 2:
      mischief.corrupt_back = below(handshake + 200);
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
std::function<Mischief()> RandomNetwork(uint64_t seed, Address::Kind kind) {
  const uint64_t handshake = kind == Address::Kind::kTls ? 3000 : 400;
  auto random = std::make_shared<std::mt19937_64>(seed);
  auto left = std::make_shared<int>(1 + static_cast<int>((*random)() % 8));
  return [random, left, handshake] {
    return --*left >= 0 ? RandomMischief(*random, handshake) : Mischief{};
  };
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

constexpr uint64_t kRunsPerBatch = 50;

// One run: a random network, sometimes a spool that is too small, sometimes a collector that is
// replaced in the middle, sometimes somebody who follows.
class ChaosRun {
 public:
  explicit ChaosRun(uint64_t seed) : seed_(seed), random_(seed), way_(WayOf(seed)) {}

  void Run() {
    ASSERT_TRUE(Start());
    const std::vector<Chunk> chunks = fakes::StreamedChunks(kStream, 5 + random_() % 30, seed_);
    const size_t replaced_at = random_() % 3 == 0 ? random_() % chunks.size() : chunks.size();
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i == replaced_at) {
        ASSERT_TRUE(ReplaceCollector());
      }
      uplink_->Offer(chunks[i]);
    }
    const absl::Status finished = uplink_->Finish(seconds(30));
    ASSERT_TRUE(finished.ok()) << finished;
    EXPECT_EQ(uplink_->stats().waiting_chunks, 0U);
    // What was acknowledged is on disk now, not only when the collector has ended in order.
    const fakes::Collected collected = fakes::ReadCollected(folder_ / "collected");
    ExpectSettled(collected, chunks);
    if (!is_small_) {
      EXPECT_TRUE(collected.lost.empty());
      EXPECT_EQ(collected.chunks.size(), chunks.size());
    }
    uplink_.reset();
    // Of connections that went in whatever way nothing is left, but for the follower's.
    EXPECT_TRUE(Eventually([this] {
      const Collector::Stats stats = collector_->stats();
      return stats.connections == stats.followers && stats.pending_bytes == 0;
    }));
    const bool was_one_connection = proxy_->connections() == 1 && replaced_at == chunks.size();
    if (follower_ != nullptr) EndFollowing(collected, was_one_connection);
  }

  uint64_t followed() const { return followed_; }

 private:
  bool Start() {
    collector_ = StartChaosCollector(folder_, way_);
    if (collector_ == nullptr) return false;
    Address listen = collector_->addresses().back();
    listen.path = folder_ / "proxy";
    listen.port = 0;
    proxy_ = fakes::ChaosProxy::Start(listen, collector_->addresses().back(),
                                      RandomNetwork(seed_, way_.kind));
    is_small_ = random_() % 4 == 0;
    if (random_() % 4 == 0) {
      follower_ = std::make_unique<FollowerThread>(UnixAddress(folder_ / "collector"));
      if (!Eventually([this] { return collector_->stats().followers == 1; })) return false;
    }
    Uplink::Options options = UplinkThrough(*proxy_, folder_);
    if (is_small_) {
      options.spool.max_disk_bytes = 24 << 10;
      options.spool.segment_bytes = 4 << 10;
      options.spool.max_memory_bytes = 8 << 10;
    }
    auto uplink = Uplink::Start(options);
    EXPECT_TRUE(uplink.ok()) << uplink.status();
    if (uplink.ok()) uplink_ = *std::move(uplink);
    return uplink_ != nullptr;
  }

  bool ReplaceCollector() {
    collector_.reset();
    collector_ = StartChaosCollector(folder_, way_);
    if (collector_ == nullptr) return false;
    proxy_->set_to(collector_->addresses().back());
    return true;
  }

  // With its collector, which first sends it what it has.
  void EndFollowing(const fakes::Collected& collected, bool was_one_connection) {
    collector_.reset();
    follower_->Stop();
    const std::vector<Chunk> chunks = follower_->ChunksOf(kStream);
    followed_ = chunks.size();
    ExpectFollowed(chunks, collected.all);
    // What another connection took over before it was synced is not told; else all is.
    if (was_one_connection) {
      EXPECT_EQ(chunks.size(), collected.all.size());
    }
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const Way way_;
  const ChaosFolder folder_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<fakes::ChaosProxy> proxy_;
  std::unique_ptr<FollowerThread> follower_;
  std::unique_ptr<Uplink> uplink_;
  bool is_small_ = false;
  uint64_t followed_ = 0;
};

class StreamChaos : public ::testing::TestWithParam<uint64_t> {};

TEST_P(StreamChaos, EveryAcknowledgedChunkIsOnDiskOnceAndInOrder) {
  uint64_t followed = 0;
  for (uint64_t i = 0; i < kRunsPerBatch; ++i) {
    const uint64_t seed = GetParam() * kRunsPerBatch + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ChaosRun run(seed);
    run.Run();
    if (HasFailure()) return;
    followed += run.followed();
  }
  EXPECT_GT(followed, 20U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamChaos, ::testing::Range<uint64_t>(0, 20));

// Whether the peer of a connection that is closed behind its first byte is told of a reset.
bool SeesReset(bool resets) {
  const ChaosFolder folder;
  const Way way{.kind = Address::Kind::kTcp};
  const auto collector = StartChaosCollector(folder, way);
  const auto proxy =
      fakes::ChaosProxy::Start({.kind = way.kind, .host = way.host}, collector->addresses().back(),
                               [&] { return Mischief{.close_after = 1, .resets = resets}; });
  const Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(proxy->address().port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(peer.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  EXPECT_EQ(send(peer.get(), "xy", 2, MSG_NOSIGNAL), 2);
  char byte = 0;
  return recv(peer.get(), &byte, 1, 0) < 0 && errno == ECONNRESET;
}

TEST(StreamChaosProxy, ResetsWhereToldTo) {
  EXPECT_TRUE(SeesReset(true));
  EXPECT_FALSE(SeesReset(false));
}

// The connection is closed behind every byte of Hello, Welcome, the chunks and their Ack.
TEST(StreamHandshake, MayBeCutBehindEveryByte) {
  const ChaosFolder folder;
  const auto collector = StartChaosCollector(folder);
  ASSERT_NE(collector, nullptr);
  std::mutex mutex;
  std::optional<uint64_t> cut;
  const auto proxy = fakes::ChaosProxy::Start(
      UnixAddress(folder / "proxy"), UnixAddress(folder / "collector"), [&] {
        const std::lock_guard lock(mutex);
        return Mischief{.close_after = std::exchange(cut, std::nullopt)};
      });
  Uplink::Options options = UplinkThrough(*proxy, folder);
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

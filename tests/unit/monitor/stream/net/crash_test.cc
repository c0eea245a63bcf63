// A collector whose machine crashes, again and again, while agents stream to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kvm/base/clock.h"
#include "tests/fakes/crashing_files.h"
#include "tests/unit/monitor/stream/net/followed.h"
#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kCrashRunsPerBatch = 30;
constexpr int kCrashes = 4;
constexpr int64_t kDay_ns = 86'400 * kNsPerSecond;

// The wall clock, which steps by up to a year while a collector lives, and between its lives.
std::atomic<int64_t> clock_is_off_ns = 0;
int64_t SteppingClock_ns() { return RealtimeNow_ns() + clock_is_off_ns; }

class StreamCrash : public StreamTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  // One that streams, and how far it has come.
  struct Agent {
    std::string id;
    timeline::StreamId stream{};
    std::vector<Chunk> chunks;
    size_t offered = 0;
    std::unique_ptr<Uplink> uplink{};
  };

  void Run(uint32_t seed) {
    std::mt19937 random(seed);
    fakes::CrashingFiles disk(seed + 1);
    // Before the disk, wherever this is left.
    const auto end = absl::MakeCleanup([this] { collector.reset(); });
    FollowerThread follower(Unix("collector"));
    const size_t count = 1 + random() % 2;
    agents_.clear();
    for (size_t i = 0; i < count; ++i) AddAgent(seed, i, 10 + random() % 30);
    for (int i = 0; i < kCrashes; ++i) {
      LiveUntilCrash(disk, random);
      for (const Agent& agent : agents_) ExpectNothingPromisedIsGone(disk, agent, follower);
      if (HasFailure()) return;
    }
    StartCollectorOn(disk);
    ASSERT_NE(collector, nullptr);
    for (Agent& agent : agents_) {
      OfferUpTo(agent, agent.chunks.size());
      ASSERT_TRUE(agent.uplink->Finish(seconds(20)).ok()) << agent_said.text();
    }
    collector.reset();
    follower.Stop();
    for (const Agent& agent : agents_) {
      const fakes::Collected collected = Collect(disk, agent);
      EXPECT_TRUE(collected.all_whole);
      EXPECT_TRUE(collected.lost.empty());
      EXPECT_TRUE(collected.chunks == agent.chunks) << collected.chunks.size() << " chunks";
      ExpectFollowed(follower.ChunksOf(agent.stream), collected.all);
      followed_ += follower.ChunksOf(agent.stream).size();
    }
  }

  uint64_t followed_ = 0;
  uint64_t crashed_at_work_ = 0;

 private:
  void AddAgent(uint32_t seed, size_t number, size_t chunks) {
    Agent agent;
    agent.id = "agent" + std::to_string(number);
    agent.stream = StreamNumber(static_cast<uint8_t>(1 + number));
    agent.chunks = fakes::StreamedChunks(agent.stream, chunks, seed, 600);
    agent.uplink = StartAgent(AgentOptions(Unix("collector"), agent.id));
    agents_.push_back(std::move(agent));
  }

  void OfferUpTo(Agent& agent, size_t count) {
    while (agent.offered < std::min(count, agent.chunks.size())) {
      ASSERT_TRUE(agent.uplink->Offer(agent.chunks[agent.offered++]));
    }
  }

  void StartCollectorOn(fakes::CrashingFiles& disk) {
    auto options = CollectorOptions();
    options.files = &disk;
    options.directory = "/c";
    options.store.rotate_bytes = 2000;
    options.realtime = SteppingClock_ns;
    auto started = Collector::Start(options);
    EXPECT_TRUE(started.ok() || disk.is_off()) << started.status();
    if (started.ok()) collector = *std::move(started);
  }

  // The power goes at some change of the disk, or else when all is done.
  void LiveUntilCrash(fakes::CrashingFiles& disk, std::mt19937& random) {
    disk.PowerOffIn(static_cast<int>(1 + random() % 25));
    StartCollectorOn(disk);
    if (random() % 3 == 0) disk.FailNth(static_cast<int>(1 + random() % 20), ENOSPC);
    if (collector != nullptr && random() % 2 == 0) {
      EXPECT_TRUE(Eventually([&] { return collector->stats().followers == 1; }));
    }
    for (uint64_t i = random() % 12; i > 0; --i) {
      if (random() % 4 == 0) {
        clock_is_off_ns = (static_cast<int64_t>(random() % 730) - 365) * kDay_ns;
        disk.SetTime(SteppingClock_ns());
      }
      for (Agent& agent : agents_) OfferUpTo(agent, agent.offered + random() % 3);
      // Sometimes in a round of their own, sometimes with a new connection in the middle of one.
      Uplink& one = *agents_[random() % agents_.size()].uplink;
      if (random() % 2 == 0) one.Finish(milliseconds(2)).IgnoreError();
      if (random() % 4 == 0) one.ReloadCredentials();
    }
    EXPECT_TRUE(Eventually([&] {
      return disk.is_off() || std::ranges::all_of(agents_, [](const Agent& agent) {
               return agent.uplink->Finish(milliseconds(0)).ok();
             });
    })) << agent_said.text();
    if (disk.is_off()) ++crashed_at_work_;
    disk.PowerOff();
    collector.reset();
    disk.Crash();
  }

  static fakes::Collected Collect(fakes::CrashingFiles& disk, const Agent& agent) {
    std::vector<std::string> paths = disk.Paths();
    std::erase_if(paths, [&](const std::string& path) {
      return !path.starts_with("/c/" + agent.id + "/") || !path.ends_with(".vpt");
    });
    return fakes::ReadCollected(disk, paths);
  }

  // What was acknowledged, and what a follower was sent, is on the disk of the machine that comes
  // up again.
  static void ExpectNothingPromisedIsGone(fakes::CrashingFiles& disk, const Agent& agent,
                                          const FollowerThread& follower) {
    const fakes::Collected there = Collect(disk, agent);
    const size_t acknowledged = agent.uplink->stats().acknowledged_chunks;
    ASSERT_LE(acknowledged, there.chunks.size());
    ASSERT_TRUE(std::equal(there.chunks.begin(), there.chunks.end(), agent.chunks.begin()));
    EXPECT_TRUE(there.lost.empty());
    ExpectFollowed(follower.ChunksOf(agent.stream), there.all);
  }

  std::vector<Agent> agents_;
};

TEST_P(StreamCrash, NothingThatWasAcknowledgedIsLostOrDoubled) {
  for (uint32_t i = 0; i < kCrashRunsPerBatch; ++i) {
    const uint32_t seed = GetParam() * kCrashRunsPerBatch + i;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Run(seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(followed_, 10 * kCrashRunsPerBatch);
  EXPECT_GT(crashed_at_work_, kCrashRunsPerBatch);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamCrash, ::testing::Range<uint32_t>(0, 4));

}  // namespace
}  // namespace vcpulse::stream

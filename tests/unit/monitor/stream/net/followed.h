#pragma once

// A follower beside agents and collectors, and what it must and must not have seen.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "monitor/stream/net/follower.h"
#include "tests/fakes/streamed_chunks.h"

namespace vcpulse::stream {

// Follows all streams of a collector on a thread of its own, again and again as the collector comes
// and goes.
class FollowerThread {
 public:
  explicit FollowerThread(const Address& address) : address_(address), thread_([this] { Run(); }) {}
  ~FollowerThread() { Stop(); }
  FollowerThread(const FollowerThread&) = delete;
  FollowerThread& operator=(const FollowerThread&) = delete;

  // At once where the collector has ended, which sends it first what it has; else within 100 ms.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // What came of this stream, over all connections, in order. Any thread.
  std::vector<fakes::Chunk> ChunksOf(const timeline::StreamId& stream) const {
    const std::lock_guard lock(mutex_);
    std::vector<fakes::Chunk> chunks;
    std::ranges::copy_if(chunks_, std::back_inserter(chunks), [&](const fakes::Chunk& chunk) {
      return fakes::HeaderOf(chunk).stream_id == stream;
    });
    return chunks;
  }

 private:
  void Run() {
    FollowOptions options;
    options.address = address_;
    options.identity = {.agent_id = "follower", .host_name = "host"};
    options.first_backoff = std::chrono::milliseconds(1);
    options.longest_backoff = std::chrono::milliseconds(2);
    options.chunk = [this](const v1::StreamInfo&, std::span<const uint8_t> chunk) {
      const std::lock_guard lock(mutex_);
      chunks_.emplace_back(chunk.begin(), chunk.end());
      return absl::OkStatus();
    };
    while (!stops_) {
      const absl::Status ended = Follow(options, [this] { return stops_.load(); });
      EXPECT_TRUE(ended.ok() || absl::IsUnavailable(ended)) << ended;
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return stops_.load(); });
    }
  }

  const Address address_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<fakes::Chunk> chunks_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

// A follower saw only what is there, byte for byte, each at most once and in order.
inline void ExpectFollowed(const std::vector<fakes::Chunk>& followed,
                           const std::vector<fakes::Chunk>& there) {
  auto at = there.begin();
  for (const fakes::Chunk& chunk : followed) {
    at = std::find(at, there.end(), chunk);
    ASSERT_NE(at, there.end()) << "a follower saw what is not there, or twice, or not in order: "
                               << fakes::HeaderOf(chunk).first_sequence << " to "
                               << fakes::HeaderOf(chunk).last_sequence;
    ++at;
  }
}

}  // namespace vcpulse::stream

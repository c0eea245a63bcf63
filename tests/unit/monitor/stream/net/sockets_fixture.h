#pragma once

// A real collector and real agents in one process, on sockets below a folder of the test.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/uplink.h"
#include "tests/fakes/filling_files.h"
#include "tests/fakes/streamed_chunks.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::stream {

using fakes::Chunk;

// Lines that were said, from any thread.
class Said {
 public:
  std::function<void(const std::string&)> Sink() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      text_ += line + "\n";
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool Has(const std::string& part) const { return text().find(part) != std::string::npos; }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

// Waits for what other threads bring about; false after 20 s.
inline bool Eventually(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return is_so();
}

inline timeline::StreamId StreamNumber(uint8_t number) {
  timeline::StreamId id{};
  id.fill(number);
  return id;
}

inline Address Loopback(Address::Kind kind, uint16_t port = 0,
                        const std::string& host = "127.0.0.1") {
  return {.kind = kind, .host = host, .port = port};
}

class StreamTest : public ::testing::Test {
 protected:
  ~StreamTest() override {
    collector.reset();
    std::filesystem::remove_all(folder);
  }

  std::string Path(const std::string& name) const { return (folder / name).string(); }
  Address Unix(const std::string& name) const {
    return {.kind = Address::Kind::kUnix, .path = Path(name)};
  }

  // Options of a collector on the unix socket `collector`.
  Collector::Options CollectorOptions() {
    Collector::Options options;
    options.listen = {Unix("collector")};
    options.directory = Path("collected");
    options.say = said.Sink();
    return options;
  }
  void StartCollector(Collector::Options options) {
    auto started = Collector::Start(std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    collector = *std::move(started);
  }

  // Options of an agent that keeps its spool in memory and tries again quickly.
  Uplink::Options AgentOptions(const Address& to, const std::string& agent_id = "agent") {
    Uplink::Options options;
    options.addresses = {to};
    options.identity = {.agent_id = agent_id, .host_name = agent_id + "-host", .boot_id = agent_id};
    options.first_backoff = std::chrono::milliseconds(2);
    options.longest_backoff = std::chrono::milliseconds(20);
    options.say = agent_said.Sink();
    return options;
  }
  std::unique_ptr<Uplink> StartAgent(Uplink::Options options) {
    auto started = Uplink::Start(std::move(options));
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }

  std::vector<Chunk> CollectedChunks(const std::string& agent = "agent") const {
    return fakes::ReadCollected(folder / "collected" / agent).chunks;
  }

  std::filesystem::path folder = fakes::MakeTemporaryFolder();
  fakes::FillingFiles files;  // of those who are given it; outlives them
  Said said;
  Said agent_said;
  std::unique_ptr<Collector> collector;
};

inline void OfferAll(Uplink& agent, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) ASSERT_TRUE(agent.Offer(chunk));
}

}  // namespace vcpulse::stream

// Agents and collectors that are killed (SIGKILL) at random instants under load. Each is a process
// of its own, forked by a test that has no threads.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/monitor/stream/net/sockets_fixture.h"

namespace vcpulse::stream {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kKills = 100;
constexpr size_t kChunksOfAll = 6000;  // more than are sent until the last kill
constexpr size_t kChunksOfOne = 200;   // more than an agent sends until it is killed

// What processes tell each other.
struct Shared {
  std::atomic<bool> stops = false;
  std::atomic<uint64_t> acknowledged = 0;
  std::atomic<uint64_t> offered[kKills + 1] = {};
  std::atomic<uint64_t> spooled[kKills + 1] = {};  // of `offered`, in the spool for sure
};

class StreamKill : public StreamTest {
 protected:
  StreamKill() {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = new (memory) Shared;
  }
  ~StreamKill() override {
    for (const pid_t child : children) Kill(child);
    munmap(shared, sizeof(Shared));
  }

  // Runs `work` in a process of its own, which ends with its value.
  pid_t Fork(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    children.push_back(child);
    return child;
  }
  void Kill(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  void KillAndForget(pid_t child) {
    Kill(child);
    std::erase(children, child);
  }
  int ExitCodeOf(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    std::erase(children, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t ForkCollector() {
    return Fork([this] {
      auto options = CollectorOptions();
      options.store.rotate_bytes = 200'000;
      const auto running = Collector::Start(options);
      if (!running.ok()) return 1;
      while (true) pause();
    });
  }
  // An agent that offers the chunks of stream `number`, one after the other, until told to stop.
  pid_t ForkAgent(uint8_t number, const std::vector<Chunk>& chunks) {
    return Fork([&] { return RunAgent(number, chunks); });
  }
  static std::vector<Chunk> ChunksOf(uint8_t number, size_t count) {
    return fakes::StreamedChunks(StreamNumber(number), count, number, 600);
  }

  int RunAgent(uint8_t number, const std::vector<Chunk>& chunks) {
    auto options = AgentOptions(Unix("collector"));
    options.spool.directory = Path("spool");
    auto started = Uplink::Start(options);
    if (!started.ok()) return 1;
    Uplink& agent = **started;
    const uint64_t before = shared->acknowledged;
    uint64_t offered = 0;
    for (const Chunk& chunk : chunks) {
      if (shared->stops) break;
      shared->offered[number] = ++offered;  // before it is: this process may be killed between
      agent.Offer(chunk);
      const Uplink::Stats stats = agent.stats();
      if (stats.queue_bytes == 0) shared->spooled[number] = offered;
      shared->acknowledged = before + stats.acknowledged_chunks;
      std::this_thread::sleep_for(microseconds(300));
    }
    while (!shared->stops) {
      shared->acknowledged = before + agent.stats().acknowledged_chunks;
      std::this_thread::sleep_for(milliseconds(1));
    }
    const absl::Status finished = agent.Finish(seconds(30));
    if (!finished.ok()) std::fprintf(stderr, "%s\n", finished.ToString().c_str());
    return finished.ok() ? 0 : 1;
  }

  // The collected chunks of a stream are its first ones, each once; how many.
  size_t ExpectBeginningOf(uint8_t number, const std::vector<Chunk>& sent) {
    const std::string id =
        std::string(1, "0123456789abcdef"[number >> 4]) + "0123456789abcdef"[number & 15];
    std::vector<Chunk> collected;
    for (const auto& entry : std::filesystem::directory_iterator(Path("collected/agent"))) {
      if (!entry.path().string().ends_with(id)) continue;
      const fakes::Collected found = fakes::ReadCollected(entry.path());
      EXPECT_TRUE(found.all_whole);
      EXPECT_TRUE(found.lost.empty());
      collected.insert(collected.end(), found.chunks.begin(), found.chunks.end());
    }
    EXPECT_LE(collected.size(), sent.size());
    EXPECT_TRUE(std::equal(collected.begin(), collected.end(), sent.begin()))
        << "stream " << int{number};
    return collected.size();
  }

  Shared* shared = nullptr;
  std::vector<pid_t> children;
};

TEST_F(StreamKill, ACollectorThatIsKilledLosesNothingThatItAcknowledged) {
  const auto chunks = ChunksOf(1, kChunksOfAll);
  const pid_t agent = ForkAgent(1, chunks);
  std::minstd_rand random(1);
  for (int i = 0; i < kKills; ++i) {
    const uint64_t before = shared->acknowledged;
    const pid_t killed = ForkCollector();
    std::this_thread::sleep_for(microseconds(2'000 + random() % 25'000));
    // Every second one at its work, however slow this machine is; the others also while they start.
    for (int ms = 0; i % 2 == 1 && ms < 2'000 && shared->acknowledged < before + 3; ++ms) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    const uint64_t acknowledged = shared->acknowledged;
    KillAndForget(killed);
    ASSERT_GE(CollectedChunks().size(), acknowledged) << "kill " << i;
  }
  EXPECT_GT(shared->acknowledged, 100U);  // under load, not only at rest
  ForkCollector();
  shared->stops = true;
  ASSERT_EQ(ExitCodeOf(agent), 0);
  EXPECT_EQ(ExpectBeginningOf(1, chunks), shared->offered[1]);
}

TEST_F(StreamKill, AnAgentThatIsKilledLosesNothingThatItsSpoolHad) {
  ForkCollector();
  std::minstd_rand random(2);
  std::vector<std::vector<Chunk>> chunks;
  for (uint8_t i = 0; i <= kKills; ++i) {
    chunks.push_back(ChunksOf(static_cast<uint8_t>(i + 1), kChunksOfOne));
  }
  for (uint8_t i = 0; i < kKills; ++i) {
    const pid_t agent = ForkAgent(i, chunks[i]);
    std::this_thread::sleep_for(microseconds(2'000 + random() % 25'000));
    // Every second one at its work, however slow this machine is; the others also while they start.
    for (int ms = 0; i % 2 == 1 && ms < 2'000 && shared->spooled[i] < 3; ++ms) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    KillAndForget(agent);
  }
  shared->stops = true;
  ASSERT_EQ(ExitCodeOf(ForkAgent(kKills, chunks[kKills])), 0);
  size_t collected = 0;
  for (uint8_t i = 0; i < kKills; ++i) {
    const size_t of_stream = ExpectBeginningOf(static_cast<uint8_t>(i + 1), chunks[i]);
    EXPECT_GE(of_stream, shared->spooled[i]) << "stream " << int{i};
    EXPECT_LE(of_stream, shared->offered[i]);
    collected += of_stream;
  }
  // All that was acknowledged had been in the spool before.
  EXPECT_GT(collected, 100U);
}

}  // namespace
}  // namespace vcpulse::stream

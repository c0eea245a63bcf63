// Streaming on loopback: what a collector takes, with syncing and without, beside a program that
// only copies the same bytes from a socket into a file; what sending costs an agent; 200 agents at
// once; memory per idle agent.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"
#include "tests/fakes/temporary_folder.h"

namespace vcpulse::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr int kVcpus = 64;

// Processor time of the threads of this process whose name is `name`, s.
double ThreadCpu_s(const std::string& name) {
  double total_s = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::string is;
    std::ifstream(task.path() / "comm") >> is;
    uint64_t run_ns = 0;
    if (is == name && std::ifstream(task.path() / "schedstat") >> run_ns) {
      total_s += static_cast<double>(run_ns) * 1e-9;
    }
  }
  return total_s;
}

timeline::StreamId IdOf(size_t number) {
  timeline::StreamId id{};
  id.fill(0x5a);
  for (size_t i = 0; i < sizeof(number); ++i) id[i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}

using Chunk = std::vector<uint8_t>;

// A stream of 64 vCPUs at 100 ms, in chunks of so many ticks, as `record --to` cuts them.
std::vector<Chunk> MakeChunks(size_t stream, size_t chunks, size_t ticks_per_chunk) {
  std::vector<Chunk> out;
  const auto writer =
      timeline::NewChunkWriter(IdOf(stream),
                               [&out](std::span<const uint8_t> bytes) {
                                 out.emplace_back(bytes.begin(), bytes.end());
                                 return absl::OkStatus();
                               },
                               {.max_buffered_bytes = timeline::kBufferedBytesForWire});
  std::vector<fakes::Load> loads;
  for (int i = 0; i < kVcpus; ++i) loads.push_back(static_cast<fakes::Load>(i % 3));
  fakes::SyntheticVm vm(loads, 100'000'000, stream);
  v1::TimelineRecord record;
  record.mutable_session()->set_host_name("bench");
  writer->Add(record, 1);
  *record.mutable_vcpu_set() = vm.VcpuSet(1, 1);
  writer->Add(record, 1);
  const auto verdicts = vm.Verdicts();
  for (size_t c = 0; c < chunks; ++c) {
    for (size_t t = 0; t < ticks_per_chunk; ++t) writer->AddTick(1, 1, vm.Next(), verdicts);
    static_cast<void>(writer->Flush({}));
  }
  return out;
}

struct Setup {
  explicit Setup(bool sync) {
    stream::Collector::Options options;
    options.listen = {{.kind = stream::Address::Kind::kTcp, .host = "127.0.0.1", .port = 0}};
    options.directory = (folder / "collected").string();
    options.sync = sync;
    auto started = stream::Collector::Start(options);
    if (started.ok()) collector = *std::move(started);
  }
  ~Setup() {
    collector.reset();
    fs::remove_all(folder);
  }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  std::unique_ptr<stream::Uplink> Agent(size_t number) {
    stream::Uplink::Options options;
    options.addresses = collector->addresses();
    options.identity = {.agent_id = absl::StrCat("agent-", number), .boot_id = "boot"};
    options.spool.max_memory_bytes = 256u << 20;
    options.max_queue_bytes = 256u << 20;
    auto started = stream::Uplink::Start(options);
    return started.ok() ? *std::move(started) : nullptr;
  }

  fs::path folder = fakes::MakeTemporaryFolder();
  std::unique_ptr<stream::Collector> collector;
};

double CollectorCpu_s() { return ThreadCpu_s("vcpulse-net") + ThreadCpu_s("vcpulse-disk"); }

// Two agents send chunks of 1 s (10 ticks) or of 4.7 s (47 ticks, a catching-up agent).
void Collect(benchmark::State& state) {
  const bool sync = state.range(0) != 0;
  const auto ticks = static_cast<size_t>(state.range(1));
  const size_t count = 40'000 / ticks;
  std::vector<std::vector<Chunk>> streams;
  size_t bytes = 0;
  for (size_t s = 0; s < 2; ++s) {
    streams.push_back(MakeChunks(s + 1, count, ticks));
    for (const Chunk& chunk : streams.back()) bytes += chunk.size();
  }
  const double samples = 2.0 * static_cast<double>(count * ticks) * kVcpus;
  double collector_s = 0;
  double agent_s = 0;
  for (auto _ : state) {
    Setup setup(sync);
    std::vector<std::unique_ptr<stream::Uplink>> agents;
    for (size_t s = 0; s < 2; ++s) agents.push_back(setup.Agent(s));
    for (auto& agent : agents) static_cast<void>(agent->AwaitConnected(seconds(10)));
    const double before_s = CollectorCpu_s();
    const double agents_before_s = ThreadCpu_s("vcpulse-uplink");
    timespec begin{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (size_t c = 0; c < count; ++c) {
      for (size_t s = 0; s < 2; ++s) agents[s]->Offer(streams[s][c]);
    }
    timespec end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    for (auto& agent : agents) {
      if (!agent->Finish(seconds(60)).ok()) state.SkipWithError("not all was acknowledged");
    }
    collector_s += CollectorCpu_s() - before_s;
    agent_s += ThreadCpu_s("vcpulse-uplink") - agents_before_s +
               static_cast<double>(end.tv_sec - begin.tv_sec) +
               static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["Msamples_per_core_s"] = samples * rounds / collector_s * 1e-6;
  state.counters["chunks_per_core_s"] = 2.0 * static_cast<double>(count) * rounds / collector_s;
  state.counters["agent_cpu_s_per_Msample"] = agent_s / (samples * rounds * 1e-6);
  state.counters["bytes_per_sample"] = static_cast<double>(bytes) / samples;
  state.counters["Msamples_per_s"] =
      benchmark::Counter(samples * rounds * 1e-6, benchmark::Counter::kIsRate);
}
BENCHMARK(Collect)
    ->ArgNames({"fsync", "ticks"})
    ->Args({1, 10})
    ->Args({0, 10})
    ->Args({1, 47})
    ->Args({0, 47})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The alternative: read(2) from a socket, write(2) to a file, and nothing is understood, checked or
// acknowledged.
void CopyToFile(benchmark::State& state) {
  const auto chunks = MakeChunks(1, 4'000, 10);
  const std::string path =
      (fs::temp_directory_path() / absl::StrCat("vcpulse-copy-", getpid())).string();
  double copier_s = 0;
  for (auto _ : state) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return state.SkipWithError("socketpair");
    std::thread sender([&] {
      for (const Chunk& chunk : chunks) {
        if (send(pair[1], chunk.data(), chunk.size(), 0) < 0) break;
      }
      close(pair[1]);
    });
    timespec begin{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    std::vector<char> buffer(32 << 10);
    ssize_t got = 0;
    while ((got = read(pair[0], buffer.data(), buffer.size())) > 0) {
      if (write(file, buffer.data(), static_cast<size_t>(got)) != got) break;
    }
    fdatasync(file);
    close(file);
    timespec end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    sender.join();
    close(pair[0]);
    copier_s += static_cast<double>(end.tv_sec - begin.tv_sec) +
                static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
  }
  fs::remove(path);
  state.counters["Msamples_per_core_s"] =
      4'000.0 * 10 * kVcpus * static_cast<double>(state.iterations()) / copier_s * 1e-6;
}
BENCHMARK(CopyToFile)->UseRealTime()->Unit(benchmark::kMillisecond);

// So many agents of 64 vCPUs at 100 ms, a chunk each second: the collector's share of one core.
void ManyAgents(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  constexpr size_t kRounds = 10;
  Setup setup(true);
  std::vector<std::unique_ptr<stream::Uplink>> agents;
  std::vector<std::vector<Chunk>> streams;
  for (size_t i = 0; i < count; ++i) {
    agents.push_back(setup.Agent(i));
    streams.push_back(MakeChunks(i + 1, kRounds, 10));
  }
  for (auto& agent : agents) {
    if (!agent->AwaitConnected(seconds(20)).ok()) state.SkipWithError("not connected");
  }
  const double before_s = CollectorCpu_s();
  for (auto _ : state) {
    for (size_t round = 0; round < kRounds; ++round) {
      const auto next = std::chrono::steady_clock::now() + seconds(1);
      for (size_t i = 0; i < count; ++i) {
        agents[i]->Offer(streams[i][round]);
        std::this_thread::sleep_for(std::chrono::microseconds(900'000 / count));
      }
      std::this_thread::sleep_until(next);
    }
    for (auto& agent : agents) {
      if (!agent->Finish(seconds(20)).ok()) state.SkipWithError("not all was acknowledged");
    }
  }
  state.counters["percent_of_a_core"] = (CollectorCpu_s() - before_s) / kRounds * 100;
  state.counters["commits"] = static_cast<double>(setup.collector->stats().commits);
}
BENCHMARK(ManyAgents)->Arg(200)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

double ResidentKiB(pid_t pid) {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream(absl::StrCat("/proc/", pid, "/statm")) >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

// Memory of a collector (a process of its own) per agent that has sent a chunk and is idle since.
void IdleAgents(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  const fs::path folder = fakes::MakeTemporaryFolder();
  const std::string socket = (folder / "collector").string();
  malloc_trim(0);  // what earlier benchmarks left would be taken for the agents'
  const pid_t pid = fork();
  if (pid == 0) {
    stream::Collector::Options options;
    options.listen = {{.kind = stream::Address::Kind::kUnix, .path = socket}};
    options.directory = (folder / "collected").string();
    const auto collector = stream::Collector::Start(options);
    while (collector.ok()) pause();
    _exit(1);
  }
  const auto agent = [&](size_t number) {
    stream::Uplink::Options options;
    options.addresses = {{.kind = stream::Address::Kind::kUnix, .path = socket}};
    options.identity = {.agent_id = absl::StrCat("agent-", number), .boot_id = "boot"};
    auto started = stream::Uplink::Start(options);
    auto uplink = *std::move(started);
    for (const Chunk& chunk : MakeChunks(number, 1, 10)) uplink->Offer(chunk);
    if (!uplink->Finish(seconds(20)).ok()) state.SkipWithError("not acknowledged");
    return uplink;
  };
  for (auto _ : state) {
    std::vector<std::unique_ptr<stream::Uplink>> agents;
    agents.push_back(agent(1));
    const double before_kib = ResidentKiB(pid);
    for (size_t i = 0; i < count; ++i) agents.push_back(agent(i + 2));
    state.counters["kib_per_agent"] = (ResidentKiB(pid) - before_kib) / static_cast<double>(count);
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  fs::remove_all(folder);
}
BENCHMARK(IdleAgents)->Arg(200)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

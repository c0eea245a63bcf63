// Many hosts in one process: each publishes the chunks of one drawn timeline to NATS, at the pace
// of the recording or faster, as `vcpulse record --to` does, but for the spool. Prints figures as
// JSON.
//   fleet_agents TIMELINE --to nats://127.0.0.1:4222 --agents 2000 --speed 1 --seconds 60

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/nats/broker_ack.h"
#include "monitor/stream/nats/connection.h"
#include "monitor/stream/nats/subject.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse {
namespace {

constexpr double kSecond_ns = 1e9;

struct Options {
  std::string timeline;
  std::vector<std::string> to;
  uint64_t agents = 100;
  uint64_t connections = 4;
  uint64_t under_way = 256;  // messages of one connection without an answer
  double speed = 1;          // 0: as fast as the broker takes them
  double seconds = 30;       // of publishing
};

struct Chunk {
  timeline::ChunkHeader header;
  std::vector<uint8_t> bytes;
};

absl::StatusOr<std::vector<Chunk>> ReadChunks(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> all{std::istreambuf_iterator<char>(file), {}};
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < all.size();) {
    const auto header = timeline::DecodeChunkHeader(std::span(all).subspan(at));
    if (!header.ok()) return header.status();
    const size_t length = header->header_bytes + header->payload_bytes;
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
    if (header->first_sequence <= header->last_sequence) {
      chunks.push_back({*header, {begin, begin + static_cast<ptrdiff_t>(length)}});
    }
    at += length;
  }
  if (chunks.empty()) return absl::InvalidArgumentError(path + " has no chunks");
  return chunks;
}

struct Totals {
  std::atomic<uint64_t> published = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint64_t> acknowledged = 0;
  std::atomic<uint64_t> failed = 0;
  std::atomic<int64_t> latest_ns = 0;  // how far behind its time a chunk was published, at most
};

// The agents `first`, `first` + connections, ... over one connection.
absl::Status Publish(const Options& options, const std::vector<Chunk>& chunks, uint64_t first,
                     Totals& totals) {
  auto connection = stream::NatsConnection::Open({.urls = options.to, .name = "fleet"},
                                                 {.connected = [] {},
                                                  .disconnected = [] {},
                                                  .trouble = [](const std::string&, bool) {},
                                                  .closed = [](const std::string&, bool) {}});
  if (!connection.ok()) return connection.status();
  std::atomic<uint64_t> under_way = 0;
  absl::Status status =
      (*connection)->TakeAnswers([&](uint64_t, std::string_view answer, bool nobody) {
        const bool is_stored = !nobody && stream::ParseBrokerAck(answer).ok();
        ++(is_stored ? totals.acknowledged : totals.failed);
        --under_way;
      });
  const int64_t begin_ns = MonotonicNow_ns();
  const int64_t end_ns = begin_ns + static_cast<int64_t>(options.seconds * kSecond_ns);
  const auto wait_below = [&](uint64_t most) {
    while (under_way >= most && MonotonicNow_ns() < end_ns + 10 * static_cast<int64_t>(1e9)) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  };
  for (size_t number = 0; status.ok() && number < chunks.size(); ++number) {
    const Chunk& chunk = chunks[number];
    const double since_ns =
        static_cast<double>(chunk.header.last_mono_ns - chunks.front().header.first_mono_ns);
    for (uint64_t agent = first; status.ok() && agent < options.agents;
         agent += options.connections) {
      if (MonotonicNow_ns() >= end_ns) return status;
      if (options.speed > 0) {
        // Agents do not all flush at the same instant.
        const double offset_ns =
            kSecond_ns * static_cast<double>(agent) / static_cast<double>(options.agents);
        const int64_t due_ns =
            begin_ns + static_cast<int64_t>((since_ns + offset_ns) / options.speed);
        const int64_t now_ns = MonotonicNow_ns();
        if (due_ns > now_ns) {
          std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now_ns));
        } else if (now_ns - due_ns > totals.latest_ns) {
          totals.latest_ns = now_ns - due_ns;
        }
      }
      wait_below(options.under_way);
      const std::string id = absl::StrCat("host-", agent);
      ++under_way;
      status =
          (*connection)
              ->Publish(stream::SubjectOf(id, chunk.header.stream_id),
                        stream::MessageIdOf(id, chunk.header.stream_id, chunk.header.first_sequence,
                                            chunk.header.payload_crc),
                        number * options.agents + agent, chunk.bytes);
      ++totals.published;
      totals.bytes += chunk.bytes.size();
    }
  }
  wait_below(1);
  return status;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Run(const Options& options) {
  const auto chunks = ReadChunks(options.timeline);
  if (!chunks.ok()) {
    std::fprintf(stderr, "fleet_agents: %s\n", chunks.status().ToString().c_str());
    return 2;
  }
  Totals totals;
  std::vector<absl::Status> statuses(options.connections);
  const int64_t begin_ns = MonotonicNow_ns();
  {
    std::vector<std::jthread> threads;
    for (uint64_t number = 0; number < options.connections; ++number) {
      threads.emplace_back(
          [&, number] { statuses[number] = Publish(options, *chunks, number, totals); });
    }
  }
  const double seconds = static_cast<double>(MonotonicNow_ns() - begin_ns) / kSecond_ns;
  for (const absl::Status& status : statuses) {
    if (status.ok()) continue;
    std::fprintf(stderr, "fleet_agents: %s\n", status.ToString().c_str());
    return 2;
  }
  std::printf(
      "{\"agents\": %llu, \"published\": %llu, \"acknowledged\": %llu, \"failed\": %llu, "
      "\"bytes\": %llu, \"seconds\": %.3f, \"cpu_seconds\": %.3f, \"latest_s\": %.3f}\n",
      static_cast<unsigned long long>(options.agents),
      static_cast<unsigned long long>(totals.published),
      static_cast<unsigned long long>(totals.acknowledged),
      static_cast<unsigned long long>(totals.failed), static_cast<unsigned long long>(totals.bytes),
      seconds, CpuSeconds(), static_cast<double>(totals.latest_ns) / kSecond_ns);
  return 0;
}

}  // namespace
}  // namespace vcpulse

int main(int argc, char** argv) {
  CLI::App app("Many hosts that publish one drawn timeline to NATS");
  vcpulse::Options options;
  app.add_option("TIMELINE", options.timeline)->required();
  app.add_option("--to", options.to, "servers of NATS")->required();
  app.add_option("--agents", options.agents);
  app.add_option("--connections", options.connections);
  app.add_option("--under-way", options.under_way);
  app.add_option("--speed", options.speed, "1: as recorded; 0: as fast as the broker takes it");
  app.add_option("--seconds", options.seconds);
  CLI11_PARSE(app, argc, argv);
  return vcpulse::Run(options);
}

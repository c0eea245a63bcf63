#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/http/server.h"
#include "monitor/rollup/store/stream_rollup.h"
#include "monitor/stream/nats/collector.h"
#include "monitor/stream/nats/jetstream.h"
#include "monitor/stream/net/collector.h"
#include "tools/vcpulse/rollup_options.h"
#include "tools/vcpulse/uplink_options.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// `vcpulse collect`, as written. Not given: nothing.
struct CollectOptions {
  std::vector<std::string> listen;
  std::string directory;
  std::optional<std::string> status;
  PeerOptions peer;  // without an agent id
  std::vector<std::string> from;
  NatsText nats;
  std::optional<std::string> consumer;
  bool make_stream = false;
  std::optional<std::string> replicas;
  std::optional<std::string> max_age;
  std::optional<std::string> max_bytes;
  std::vector<std::string> allowed_users;
  std::vector<std::string> allowed_followers;
  std::optional<std::string> max_connections;
  std::optional<std::string> peer_rate;
  std::optional<std::string> memory;
  std::optional<std::string> rotate_size;
  std::optional<std::string> rotate_every;
  std::optional<std::string> keep_for;
  std::optional<std::string> keep_size;
  LevelOptions levels;
};

void AddCollectOptions(CLI::App& command, CollectOptions& options);

// What was asked for.
struct CollectRequest {
  stream::Collector::Options collector;  // but for `say`
  std::optional<http::Endpoint> status;
  std::optional<stream::NatsCollectorOptions> nats;  // with `collector` once it runs
  std::optional<stream::JetStreamLimits> make_stream;
  Levels levels;  // what is kept beside the timelines
};

// Errors: InvalidArgument in one line that begins with the flag; NotFound for a user that is none.
absl::StatusOr<CollectRequest> ParseCollect(const CollectOptions& options);

// Stops it in order. Says where something was not written within `patience`; the exit code is an
// error then.
int StopCollector(stream::Collector& collector, std::chrono::seconds patience);

}  // namespace vcpulse::tools

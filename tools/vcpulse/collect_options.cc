#include "tools/vcpulse/collect_options.h"

#include <pwd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/stream/protocol/agent_id.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

using Text = std::optional<std::string>;

constexpr uint64_t kSmallestFile = 1u << 20;  // a chunk may be that large
constexpr uint64_t kSmallestKept = 1u << 20;
constexpr uint64_t kSlowestRate = 16u << 10;
constexpr uint64_t kLeastMemory = 32u << 20;
constexpr absl::Duration kShortestRotation = absl::Seconds(1);
constexpr uint64_t kMostConnections = 1'000'000;

absl::Status ReadSize(const std::string& flag, const Text& text, uint64_t least, uint64_t& size) {
  if (!text) return absl::OkStatus();
  const auto parsed = ParseSizeOption(flag, *text);
  if (!parsed.ok()) return parsed.status();
  if (*parsed < least) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", *text, " is less than ", SizeText(least)));
  }
  size = *parsed;
  return absl::OkStatus();
}

absl::Status ReadDuration(const std::string& flag, const Text& text, int64_t& ns) {
  if (!text) return absl::OkStatus();
  const auto parsed = ParseLongDurationOption(flag, *text);
  if (!parsed.ok()) return parsed.status();
  if (*parsed < kShortestRotation) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", *text, " is less than 1s"));
  }
  ns = absl::ToInt64Nanoseconds(*parsed);
  return absl::OkStatus();
}

// `text` is what stands before the "=".
absl::StatusOr<uid_t> UserOf(const std::string& text) {
  constexpr uint64_t kNoUser = std::numeric_limits<uid_t>::max();
  if (const auto uid = ParseNumber<uint64_t>(text); uid && *uid < kNoUser) {
    return static_cast<uid_t>(*uid);
  }
  const passwd* user = text.empty() ? nullptr : getpwnam(text.c_str());
  if (user != nullptr) return user->pw_uid;
  return absl::NotFoundError(absl::StrCat("--allow-uid: '", Printable(text),
                                          "' is not a user of this host (a number or a name)"));
}

absl::Status ReadWhoMay(const CollectOptions& options, stream::Collector::Options& collector) {
  for (const std::string& text : options.allowed_users) {
    const size_t equals = text.find('=');
    const auto uid = UserOf(text.substr(0, equals));
    if (!uid.ok()) return uid.status();
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--allow-uid: '", Printable(text), "' has no agent id: write ", text,
                       "=AGENT-ID[,AGENT-ID...], the ids that this user may send under"));
    }
    for (absl::string_view id : absl::StrSplit(text.substr(equals + 1), ',')) {
      if (const absl::Status status = stream::CheckAgentId(std::string(id)); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("--allow-uid: ", status.message()));
      }
      collector.allowed_users[*uid].emplace_back(id);
    }
  }
  const auto any = [&](stream::Address::Kind kind) {
    return std::ranges::any_of(
        collector.listen, [kind](const stream::Address& address) { return address.kind == kind; });
  };
  if (!options.allowed_users.empty() && !any(stream::Address::Kind::kUnix)) {
    return absl::InvalidArgumentError(
        "--allow-uid: it is for unix: sockets, and --listen names none");
  }
  for (const std::string& name : options.allowed_followers) {
    if (const absl::Status status = stream::CheckAgentId(name); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--allow-follower: ", status.message()));
    }
  }
  if (!options.allowed_followers.empty() && !any(stream::Address::Kind::kTls) &&
      options.allowed_users.empty()) {
    return absl::InvalidArgumentError(
        "--allow-follower: it is for agent ids of certificates and of --allow-uid: there is "
        "neither");
  }
  collector.allowed_followers = options.allowed_followers;
  return absl::OkStatus();
}

absl::Status ReadLimits(const CollectOptions& options, stream::Collector::Options& collector) {
  if (options.max_connections) {
    const auto number = ParseNumber<uint64_t>(*options.max_connections);
    if (!number || *number == 0 || *number > kMostConnections) {
      return absl::InvalidArgumentError(
          absl::StrCat("--max-connections: '", Printable(*options.max_connections),
                       "' is not a number from 1 to ", kMostConnections));
    }
    collector.max_connections = *number;
  }
  absl::Status status = ReadSize("--memory", options.memory, kLeastMemory, collector.memory_bytes);
  status.Update(ReadSize("--peer-rate", options.peer_rate, kSlowestRate,
                         collector.limits.max_bytes_per_second));
  return status;
}

absl::Status ReadStorage(const CollectOptions& options, stream::Collector::Options& collector) {
  if (options.directory.empty()) {
    return absl::InvalidArgumentError("--dir: name the directory for the timelines");
  }
  collector.directory = options.directory;
  absl::Status status =
      ReadSize("--rotate-size", options.rotate_size, kSmallestFile, collector.store.rotate_bytes);
  status.Update(ReadDuration("--rotate-every", options.rotate_every, collector.store.rotate_ns));
  int64_t keep_ns = 0;
  status.Update(ReadDuration("--keep-for", options.keep_for, keep_ns));
  if (options.keep_for) collector.retention.max_age_ns = keep_ns;
  uint64_t keep_bytes = 0;
  status.Update(ReadSize("--keep-size", options.keep_size, kSmallestKept, keep_bytes));
  if (options.keep_size) collector.retention.max_bytes = keep_bytes;
  return status;
}

// Parquet files are read by others with a pattern over folders, and streams are found in folders
// likewise: each wants a tree of its own.
absl::Status CheckOutside(const std::string& parquet, const std::string& directory) {
  std::error_code unknown;
  const auto whole = [&unknown](const std::string& path) {
    const auto absolute = std::filesystem::absolute(path, unknown);
    auto canonical = std::filesystem::weakly_canonical(absolute, unknown);
    return unknown ? absolute.lexically_normal() : canonical;
  };
  const auto inside = whole(parquet).lexically_relative(whole(directory));
  if (inside.empty() || *inside.begin() == "..") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--parquet: ", QuotedPath(parquet),
                                                 inside == "." ? " is" : " lies in",
                                                 " the directory of --dir: name another one"));
}

// What is kept beside the timelines, and for how long all of it is.
absl::Status ReadLevels(const CollectOptions& options, CollectRequest& request) {
  auto levels = ParseLevels(options.levels);
  if (!levels.ok()) return levels.status();
  if (levels->raw_age_ns && options.keep_for) {
    return absl::InvalidArgumentError(
        "--keep: it cannot be combined with --keep-for, which is --keep raw=DURATION");
  }
  if (!levels->rollups.empty() && request.nats) {
    return absl::InvalidArgumentError(
        "--rollup: collectors of a broker each hold a part of a stream: run `vcpulse rollup` over "
        "the directories of all of them");
  }
  if (levels->parquet && request.nats) {
    return absl::InvalidArgumentError(
        "--parquet: collectors of a broker each hold a part of a stream: run `vcpulse export "
        "--format parquet` over the stream's folders of all of them");
  }
  if (levels->parquet) {
    if (absl::Status status = CheckOutside(*levels->parquet, options.directory); !status.ok()) {
      return status;
    }
  }
  if (levels->raw_age_ns) request.collector.retention.max_age_ns = levels->raw_age_ns;
  request.levels = *std::move(levels);
  return absl::OkStatus();
}

absl::StatusOr<http::Endpoint> ParseStatusAddress(const std::string& text, bool insecure) {
  const auto address = stream::ParseAddress(text);
  if (!address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--status: ", address.status().message()));
  }
  if (address->kind != stream::Address::Kind::kTcp) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status: ", Printable(text),
                     ": it answers HTTP: write tcp:HOST:PORT, for example tcp:127.0.0.1:9465"));
  }
  if (!stream::IsLoopback(*address) && !insecure) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status: other machines can reach ", Printable(text),
                     ": name 127.0.0.1 or [::1], or give --insecure"));
  }
  return http::Endpoint{.host = address->host, .port = address->port};
}

void AddBrokerOptions(CLI::App& command, CollectOptions& options) {
  const std::string group = "NATS (docs/fleet.md)";
  const std::array<CLI::Option*, 6> all = {
      AddRepeatable(command, "--from", options.from,
                    "take from this server of NATS instead of listening; repeat for others of its "
                    "cluster")
          ->type_name("nats://HOST:PORT"),
      command
          .add_option("--consumer", options.consumer,
                      "collectors of one name share what comes, those of another have all of it "
                      "[vcpulse]")
          ->type_name("NAME"),
      command.add_flag("--make-stream", options.make_stream,
                       "make the broker's stream, or change the limits that are given, and end"),
      command
          .add_option("--replicas", options.replicas, "of --make-stream: servers that hold it [1]")
          ->type_name("N"),
      command
          .add_option("--max-age", options.max_age,
                      "of --make-stream: chunks are removed after that [72h]")
          ->type_name("DURATION"),
      command
          .add_option("--max-bytes", options.max_bytes,
                      "of --make-stream: the oldest chunks are removed beyond that [no limit]")
          ->type_name("SIZE"),
  };
  for (CLI::Option* option : all) option->group(group);
  AddNatsOptions(command, options.nats);
}

absl::Status ReadStreamLimits(const CollectOptions& options, CollectRequest& request) {
  if (!options.make_stream) {
    const char* flag = options.replicas    ? "--replicas"
                       : options.max_age   ? "--max-age"
                       : options.max_bytes ? "--max-bytes"
                                           : nullptr;
    if (flag == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(flag, ": it is for --make-stream"));
  }
  stream::JetStreamLimits limits;
  if (options.replicas) {
    const auto number = ParseNumber<uint64_t>(*options.replicas);
    if (!number || (*number != 1 && *number != 3 && *number != 5)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--replicas: '", Printable(*options.replicas), "' is none of 1, 3 and 5"));
    }
    limits.replicas = static_cast<int64_t>(*number);
  }
  int64_t age_ns = 0;
  absl::Status status = ReadDuration("--max-age", options.max_age, age_ns);
  if (options.max_age) limits.max_age = std::chrono::nanoseconds(age_ns);
  uint64_t bytes = 0;
  status.Update(ReadSize("--max-bytes", options.max_bytes, kSmallestKept, bytes));
  if (options.max_bytes) limits.max_bytes = bytes;
  request.make_stream = limits;
  return status;
}

absl::Status CheckConsumer(const std::string& name) {
  const bool is_name =
      !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_';
      });
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--consumer: '", Printable(name), "' is not a name of 1 to 64 letters, digits, - and _"));
}

// Who sends: agents on sockets, or a broker.
absl::Status ReadSources(const CollectOptions& options, CollectRequest& request) {
  if (options.from.empty() == options.listen.empty()) {
    return absl::InvalidArgumentError(
        "give --listen ADDR for agents, or --from nats://HOST:PORT for a broker, and one of them");
  }
  if (options.from.empty()) {
    std::string flag = GivenWithoutNats(options.nats);
    if (options.consumer) flag = "--consumer";
    if (options.make_stream) flag = "--make-stream";
    if (!flag.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": it is for --from nats://HOST:PORT"));
    }
    if (std::ranges::any_of(options.listen, IsNatsAddress)) {
      return absl::InvalidArgumentError(
          "--listen: a NATS server is not listened on but taken from: write --from "
          "nats://HOST:PORT");
    }
    auto listen = ParseAddresses("--listen", options.listen, stream::ParseAddress);
    if (!listen.ok()) return listen.status();
    request.collector.listen = *std::move(listen);
    auto credentials = CredentialsFor(request.collector.listen, options.peer);
    if (!credentials.ok()) return credentials.status();
    request.collector.credentials = *std::move(credentials);
    request.collector.allow_insecure = options.peer.insecure;
    return absl::OkStatus();
  }
  const char* meaningless = options.memory                       ? "--memory"
                            : options.max_connections            ? "--max-connections"
                            : options.peer_rate                  ? "--peer-rate"
                            : options.peer.revoked               ? "--crl"
                            : !options.allowed_users.empty()     ? "--allow-uid"
                            : !options.allowed_followers.empty() ? "--allow-follower"
                                                                 : nullptr;
  if (meaningless != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(meaningless, ": it is for --listen, and the broker decides who may send"));
  }
  if (options.make_stream && (!options.directory.empty() || options.status)) {
    return absl::InvalidArgumentError(
        "--make-stream makes the stream and ends: give --dir and --status to a collector");
  }
  if (!std::ranges::all_of(options.from, IsNatsAddress)) {
    return absl::InvalidArgumentError(
        "--from: write nats://HOST:PORT or nats+tls://HOST:PORT, the servers of one cluster");
  }
  auto server = ParseNats("--from", options.from, options.nats, options.peer);
  if (!server.ok()) return server.status();
  request.nats = {
      .server = *std::move(server),
  };
  request.nats->address = request.nats->server.addresses.front();
  if (options.consumer) request.nats->consumer = *options.consumer;
  return CheckConsumer(request.nats->consumer);
}

}  // namespace

void AddCollectOptions(CLI::App& command, CollectOptions& options) {
  AddRepeatable(command, "--listen", options.listen,
                "receive here; port 0 is any that is free; give it once for each")
      ->type_name("unix:PATH|tcp:HOST:PORT|tls:HOST:PORT");
  command
      .add_option("--dir", options.directory, "keep the timelines below it: DIR/AGENT/STREAM/*.vpt")
      ->type_name("DIR");
  AddBrokerOptions(command, options);
  command
      .add_option("--status", options.status,
                  "answer /healthz and Prometheus's /metrics over HTTP here")
      ->type_name("tcp:HOST:PORT");
  AddCredentialOptions(command, options.peer);
  command
      .add_option("--crl", options.peer.revoked,
                  "TLS: lists of revoked certificates, PEM; one of each CA")
      ->type_name("FILE");
  AddRepeatable(command, "--allow-uid", options.allowed_users,
                "unix: this user may connect as well, under these agent ids alone; repeatable")
      ->type_name("UID=AGENT-ID[,AGENT-ID...]");
  AddRepeatable(command, "--allow-follower", options.allowed_followers,
                "this agent id may follow every agent (`vcpulse tail`); repeatable")
      ->type_name("AGENT-ID");
  command
      .add_option("--memory", options.memory,
                  "limit of all that is buffered; beyond it those who hold the most are "
                  "disconnected [256MiB]")
      ->type_name("SIZE");
  command
      .add_option("--max-connections", options.max_connections,
                  "at once; fewer where memory or open files do not suffice [4096]")
      ->type_name("N");
  command
      .add_option("--peer-rate", options.peer_rate,
                  "slow a connection down that sends more in a second [no limit]")
      ->type_name("SIZE");
  command.add_option("--rotate-size", options.rotate_size, "begin another file then [64MiB]")
      ->type_name("SIZE");
  command.add_option("--rotate-every", options.rotate_every, "begin another file then [1h]")
      ->type_name("DURATION");
  command
      .add_option("--keep-for", options.keep_for,
                  "remove files that have not changed for so long (30d) [for ever]")
      ->type_name("DURATION");
  command
      .add_option("--keep-size", options.keep_size,
                  "while all files are more than that together, remove the oldest of the agent "
                  "that has the most [no limit]")
      ->type_name("SIZE");
  AddLevelOptions(command, options.levels);
}

absl::StatusOr<CollectRequest> ParseCollect(const CollectOptions& options) {
  CollectRequest request;
  stream::Collector::Options& collector = request.collector;
  collector.tool_version = VCPULSE_VERSION;
  absl::Status status = ReadSources(options, request);
  if (status.ok()) status = ReadStreamLimits(options, request);
  if (!status.ok() || request.make_stream)
    return status.ok() ? absl::StatusOr<CollectRequest>(request) : status;
  status = ReadWhoMay(options, collector);
  if (status.ok()) status = ReadLimits(options, collector);
  if (status.ok()) status = ReadStorage(options, collector);
  if (status.ok()) status = ReadLevels(options, request);
  if (!status.ok()) return status;
  if (options.status) {
    auto endpoint = ParseStatusAddress(*options.status, options.peer.insecure);
    if (!endpoint.ok()) return endpoint.status();
    request.status = *std::move(endpoint);
  }
  return request;
}

int StopCollector(stream::Collector& collector, std::chrono::seconds patience) {
  if (collector.Stop(patience)) return kExitOk;
  return Fail(absl::StrCat("not all that was received could be written within ", patience.count(),
                           " s: it was not acknowledged, and the agents send it again"));
}

}  // namespace vcpulse::tools

// `vcpulse collect`: receives the timelines of many hosts.
#include <malloc.h>
#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/http/server.h"
#include "monitor/prometheus/stream_metrics.h"
#include "monitor/rollup/store/rollup_store.h"
#include "monitor/rollup/store/tick_files.h"
#include "monitor/stream/net/collector.h"
#include "tools/vcpulse/collect_options.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/service.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kCollectFooter =
    R"(Stores each stream of `vcpulse record --to` or `vcpulse replay --to` in a folder
DIR/AGENT/START-STREAMID of timelines, START being when its recording began (UTC); with --from, the
time of the first chunk that this collector got. Every command reads them, also while they are written. Data is on disk before it is acknowledged. While the disk is full, nothing is acknowledged; agents keep their
data, and collection resumes by itself when there is room.

Examples:
  vcpulse collect --listen unix:/run/vcpulse/collect.sock --dir /srv/vcpulse
  vcpulse collect --from nats://127.0.0.1:4222 --make-stream
  vcpulse collect --from nats://127.0.0.1:4222 --dir /srv/vcpulse
  vcpulse collect --listen tls:collector.example:4711 --dir /srv/vcpulse --cert c.pem --key c.key --ca ca.pem --status tcp:127.0.0.1:9465

Who may connect:
  unix:  root and the collector's own user, with any agent id; other users with those of --allow-uid
  tls:   an agent whose certificate names its agent id (as a DNS name or URI)
  tcp:   anyone, with any agent id; beyond this machine only with --insecure

Signals:
  SIGTERM, SIGINT  write and acknowledge everything received, then exit; a second one exits at once
  SIGHUP           read the certificate files again

Exit status:
  0  ended by a signal; with --make-stream: the broker's stream is as the line says
  2  usage error, cannot listen, could not write everything received within 30 s of the signal, or
     the broker, its stream or its permissions are of no use)";

constexpr std::chrono::seconds kDrainPatience{30};

// Signals come to the main thread alone, by WaitForSignal. Before any thread begins.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int WaitForSignal(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) == EINTR) {
  }
  return signal;
}

// From here on SIGINT and SIGTERM end the process.
void LetSignalsEndUs() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, SIG_DFL);
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

http::Answer AnswerStatus(const http::Request& request, const stream::Collector& collector,
                          bool is_loopback) {
  if (is_loopback && !http::IsOwnName(request.host, request.port)) return http::AnotherName();
  if (request.target == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = prometheus::TextOf(collector.stats())};
  }
  if (request.target == "/healthz") {
    const std::string error = collector.stats().storage_error;
    if (error.empty()) return {.body = "ok\n"};
    return {.status = 503, .body = Printable(error) + "\n"};
  }
  return {.status = 404, .body = "/healthz and /metrics are here\n"};
}

absl::StatusOr<std::unique_ptr<http::Server>> ServeStatus(const http::Endpoint& endpoint,
                                                          const stream::Collector& collector) {
  const bool is_loopback =
      stream::IsLoopback({.kind = stream::Address::Kind::kTcp, .host = endpoint.host});
  auto server =
      http::Server::Start(endpoint, [&collector, is_loopback](const http::Request& request) {
        return AnswerStatus(request, collector, is_loopback);
      });
  if (!server.ok()) {
    return absl::Status(server.status().code(),
                        absl::StrCat("--status: ", server.status().message()));
  }
  Fail(absl::StrCat("status at ", stream::ToText({.kind = stream::Address::Kind::kTcp,
                                                  .host = endpoint.host,
                                                  .port = (*server)->port()})));
  return server;
}

void Reload(stream::Collector& collector, bool has_files) {
  if (!has_files) {
    Fail("SIGHUP: there are no certificate files to read anew");
    return;
  }
  const absl::Status status = collector.ReloadCredentials();
  Fail(status.ok()
           ? "SIGHUP: the certificate files were reloaded; connections that they do not allow are "
             "closed"
           : absl::StrCat("SIGHUP: the certificates stay as they were: ", status.message()));
}

int MakeStream(const CollectRequest& request) {
  const auto connection = stream::ConnectNow(request.nats->server);
  if (!connection.ok()) return Fail(connection.status());
  const auto made = stream::MakeJetStream(**connection, *request.make_stream);
  if (!made.ok()) return Fail(made.status());
  Fail(*made);
  return kExitOk;
}

absl::StatusOr<std::unique_ptr<stream::Collector>> StartAny(CollectRequest request) {
  if (!request.nats) return stream::Collector::Start(std::move(request.collector));
  request.nats->collector = std::move(request.collector);
  return stream::StartNatsCollector(*std::move(request.nats));
}

using DerivedStoreList = std::vector<std::unique_ptr<rollup::DerivedStore>>;

// What is made of the timelines in `directory`. Errors: where --parquet cannot be made.
absl::StatusOr<DerivedStoreList> DerivedStores(const std::string& directory, Levels levels) {
  const auto say = [](const std::string& line) { Fail(line); };
  DerivedStoreList stores;
  if (!levels.rollups.empty()) {
    stores.push_back(std::make_unique<rollup::RollupStore>(
        stream::KernelFiles(),
        rollup::RollupStore::Options{
            .directory = directory, .levels = std::move(levels.rollups), .say = say}));
  }
  if (levels.parquet) {
    const absl::Status made = stream::KernelFiles().MakeDirectories(*levels.parquet);
    if (!made.ok()) return absl::Status(made.code(), absl::StrCat("--parquet: ", made.message()));
    stores.push_back(std::make_unique<rollup::TickFiles>(
        stream::KernelFiles(), rollup::TickFiles::Options{.directory = directory,
                                                          .parquet = *std::move(levels.parquet),
                                                          .max_age_ns = levels.parquet_age_ns,
                                                          .version = VCPULSE_VERSION,
                                                          .say = say}));
  }
  return stores;
}

int RunCollect(const CollectOptions& options) {
  auto request = ParseCollect(options);
  if (!request.ok()) return Fail(request.status());
  // What is freed goes back to the system, so that --memory holds for the process too.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  RaiseDescriptorLimit();
  request->collector.descriptors = DescriptorLimit();
  if (request->make_stream) return MakeStream(*request);
  const sigset_t signals = BlockSignals();
  const bool has_files = request->collector.credentials.any() ||
                         (request->nats && stream::HasFiles(request->nats->server));
  const std::optional<http::Endpoint> status_endpoint = request->status;
  auto derived = DerivedStores(options.directory, std::move(request->levels));
  if (!derived.ok()) return Fail(derived.status());
  request->collector.say = [](const std::string& line) { Fail(line); };
  const auto collector = StartAny(*std::move(request));
  if (!collector.ok()) return Fail(collector.status());
  std::unique_ptr<http::Server> status_server;
  if (status_endpoint) {
    auto server = ServeStatus(*status_endpoint, **collector);
    if (!server.ok()) return Fail(server.status());
    status_server = *std::move(server);
  }
  for (const stream::Address& address : (*collector)->addresses()) {
    Fail(absl::StrCat("listening on ", stream::ToText(address)));
    if (address.kind == stream::Address::Kind::kTcp) {
      Fail(absl::StrCat(stream::ToText(address),
                        " has no authentication: whoever can connect may use any agent id; where "
                        "agents do not trust each other, listen on unix: or tls:"));
    }
  }
  std::optional<rollup::DerivingThread> deriving;
  if (!derived->empty()) deriving.emplace(*std::move(derived), RealtimeNow_ns);
  NotifyService("READY=1");
  while (WaitForSignal(signals) == SIGHUP) Reload(**collector, has_files);
  NotifyService("STOPPING=1");
  LetSignalsEndUs();
  const int exit_code = StopCollector(**collector, kDrainPatience);
  // A write that hangs would keep the process for as long.
  if (exit_code != kExitOk) std::_Exit(exit_code);
  return exit_code;
}

}  // namespace

void AddCollectCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CollectOptions>();
  CLI::App* command =
      app.add_subcommand("collect", "Receive and store the timelines of many hosts");
  command->footer(kCollectFooter);
  AddCollectOptions(*command, *options);
  command->callback([options, &exit_code] { exit_code = RunCollect(*options); });
}

}  // namespace vcpulse::tools

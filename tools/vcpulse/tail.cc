// `vcpulse tail`: what is recorded elsewhere, as it comes.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/follow/chunk_printer.h"
#include "monitor/follow/followed_folders.h"
#include "monitor/stream/nats/follower.h"
#include "monitor/stream/net/follower.h"
#include "monitor/stream/protocol/address.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/uplink_options.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kTailFooter =
    R"(SOURCE is the address of a collector (unix:PATH, tcp:HOST:PORT, tls:HOST:PORT) or of a NATS server
(nats://HOST:PORT), a collector's folder, the folder of one agent or stream in it, or a timeline that
is being written. New agents, streams and files are followed as they appear. A folder or file starts
with its last 10 ticks (of each agent's newest stream), a collector or server with new data only.

If the connection is lost, tail reconnects by itself. It reports the records that it missed: they are
in the collector's folder, and a NATS server still sends them. With tls: it needs --cert, --key and
--ca, and follows the agents that its certificate names, or all of them if the collector allows it
(`vcpulse collect --allow-follower`).

Examples:
  vcpulse tail /srv/vcpulse
  vcpulse tail unix:/run/vcpulse/collect.sock --agent host1 --format jsonl

Formats:
  text   a line per tick and VM, with markers, gaps, lost records and VM events in between: the agent
         (if there may be several), the time of day by the agent's clock, the VM, a character per vCPU
         and the IPC as in `vcpulse replay`
  jsonl  the rows of `vcpulse export --format jsonl`, with "agent" as the first key

Exit status:
  0  ended by -d, a signal, or the reader of standard output
  2  usage error, SOURCE could not be read, the first connection failed, or the collector refused it)";

constexpr std::array<std::string_view, 2> kTailFormats = {"text", "jsonl"};
constexpr int64_t kPollPeriod_ns = 200'000'000;
constexpr const char* kDefaultTicks = "10";

struct TailOptions {
  std::string source;
  std::string format = "text";
  std::optional<std::string> ticks;
  bool from_start = false;
  std::optional<std::string> duration;
  std::optional<std::string> agent;
  PeerOptions peer;
  NatsText nats;
};

// What was asked for.
struct Tail {
  follow::ChunkPrinter::Format format = follow::ChunkPrinter::Format::kText;
  follow::FollowedFolders::Options folders;
  std::optional<stream::Address> address;     // of a collector
  std::optional<stream::NatsOptions> broker;  // neither: folders
  std::optional<int64_t> end_mono_ns;
};

absl::Status CheckApart(const TailOptions& options, bool is_address) {
  if (is_address && (options.from_start || options.ticks)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.from_start ? "--from-start" : "-n",
        ": a collector sends what comes from now on; what came before is in its folder"));
  }
  const PeerOptions& peer = options.peer;
  const bool is_peer =
      peer.agent_id || peer.certificate || peer.key || peer.authorities || peer.insecure;
  if (!is_address && is_peer) {
    return absl::InvalidArgumentError(
        "--agent-id, --cert, --key, --ca and --insecure are for the address of a collector; a "
        "folder needs none");
  }
  std::error_code ignored;
  if (options.agent && std::filesystem::is_regular_file(options.source, ignored)) {
    return absl::InvalidArgumentError(
        "--agent is for a collector's address or folder; SOURCE is one timeline");
  }
  if (options.from_start && options.ticks) {
    return absl::InvalidArgumentError("--from-start and -n cannot be used together");
  }
  return absl::OkStatus();
}

absl::StatusOr<Tail> ParseTail(const TailOptions& options) {
  Tail tail;
  const auto format = std::ranges::find(kTailFormats, options.format);
  if (format == kTailFormats.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--format: '", Printable(options.format), "' is neither text nor jsonl"));
  }
  if (options.format == "jsonl") tail.format = follow::ChunkPrinter::Format::kJsonl;
  if (IsNatsAddress(options.source)) {
    auto broker = ParseNats("SOURCE", {options.source}, options.nats, options.peer);
    if (!broker.ok()) return broker.status();
    tail.broker = *std::move(broker);
  } else if (const std::string flag = GivenWithoutNats(options.nats); !flag.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": it is for nats://HOST:PORT, and SOURCE is another one"));
  } else if (LooksLikeAddress(options.source)) {
    auto address = stream::ParseDestination(options.source);
    if (!address.ok()) return address.status();
    tail.address = *std::move(address);
  }
  const bool is_live = tail.address.has_value() || tail.broker.has_value();
  if (absl::Status status = CheckApart(options, is_live); !status.ok()) {
    return status;
  }
  const std::string ticks = options.ticks.value_or(kDefaultTicks);
  const auto number = ParseNumber<uint64_t>(ticks);
  if (!number) {
    return absl::InvalidArgumentError(
        absl::StrCat("-n: '", Printable(ticks), "' is not a number of ticks"));
  }
  tail.folders = {.path = options.source,
                  .agent = options.agent,
                  .from_start = options.from_start,
                  .last_ticks = *number,
                  .say = [](const std::string& line) { Fail(line); }};
  if (options.duration) {
    const auto duration = ParseTimeOption("--duration", *options.duration);
    if (!duration.ok()) return duration.status();
    tail.end_mono_ns = MonotonicNow_ns() + absl::ToInt64Nanoseconds(*duration);
  }
  return tail;
}

bool IsOver(const Tail& tail) {
  // A quiet source writes nothing that would tell.
  return WasStopped() || StdoutReaderHasGone() ||
         (tail.end_mono_ns && MonotonicNow_ns() >= *tail.end_mono_ns);
}

// Says once that nothing has come for a second since the start.
class WaitNotice {
 public:
  explicit WaitNotice(std::string source) : source_(std::move(source)) {}

  void DataCame() { is_due_ = false; }

  void Look() {
    constexpr int64_t kAfter_ns = 1'000'000'000;
    if (MonotonicNow_ns() - start_ns_ >= kAfter_ns) SayNow();
  }
  void SayNow() {
    if (!std::exchange(is_due_, false)) return;
    Fail(absl::StrCat("waiting for data from ", Printable(source_)));
  }

 private:
  std::string source_;
  int64_t start_ns_ = MonotonicNow_ns();
  bool is_due_ = true;
};

// Where there is nothing to follow yet; --agent may name none of those that are there by mistake.
void SayNothingFound(const Tail& tail, const follow::FollowedFolders& followed,
                     WaitNotice& notice) {
  constexpr size_t kNamed = 8;
  if (followed.has_found_any()) return;
  const std::set<std::string>& others = followed.other_agents();
  if (others.empty()) return notice.SayNow();
  Fail(absl::StrCat("--agent: no agent ", Quoted(tail.folders.agent.value_or("")), " in ",
                    Printable(tail.folders.path), " yet; agents are: ",
                    Printable(Listed({others.begin(), others.end()}, kNamed))));
}

absl::Status TailFolders(const Tail& tail, follow::ChunkPrinter& printer, WaitNotice& notice) {
  auto followed = follow::FollowedFolders::Open(tail.folders);
  if (!followed.ok()) return followed.status();
  SayNothingFound(tail, *followed, notice);
  absl::Status status;
  uint64_t damaged_said = 0;
  while (status.ok()) {
    status = followed->Poll(
        [&](const follow::ChunkOwner& owner, std::span<const uint8_t> chunk, uint64_t from) {
          if (WasStopped()) return absl::CancelledError("stopped by a signal");
          notice.DataCame();
          return printer.Take(owner, chunk, from);
        });
    if (const uint64_t damaged = followed->damaged_bytes(); damaged > damaged_said) {
      Fail(absl::StrCat("warning: ", damaged - damaged_said,
                        " bytes that are not a chunk were skipped"));
      damaged_said = damaged;
    }
    if (!status.ok() || IsOver(tail)) break;
    notice.Look();
    const int64_t next_ns = MonotonicNow_ns() + kPollPeriod_ns;
    status = WaitUntil(tail.end_mono_ns ? std::min(next_ns, *tail.end_mono_ns) : next_ns);
  }
  return status;
}

absl::Status TailCollector(const Tail& tail, const TailOptions& options,
                           follow::ChunkPrinter& printer, WaitNotice& notice) {
  auto credentials = CredentialsFor({*tail.address}, options.peer);
  if (!credentials.ok()) return credentials.status();
  auto identity = IdentityOf(options.peer, "/");
  if (!identity.ok()) return identity.status();
  const stream::FollowOptions follow{
      .address = *tail.address,
      .identity = *std::move(identity),
      .credentials = *std::move(credentials),
      .allow_insecure = options.peer.insecure,
      .agent_id = options.agent.value_or(""),
      .chunk =
          [&](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
            notice.DataCame();
            return printer.Take(
                {.agent = info.agent_id(), .say_agent = !options.agent, .is_live = true}, chunk);
          },
      .say = [](const std::string& line) { Fail(Printable(line)); }};
  return stream::Follow(follow, [&] {
    notice.Look();
    return IsOver(tail);
  });
}

absl::Status TailBroker(const Tail& tail, const TailOptions& options, follow::ChunkPrinter& printer,
                        WaitNotice& notice) {
  const stream::NatsFollowOptions follow{
      .server = *tail.broker,
      .address = tail.broker->addresses.front(),
      .agent_id = options.agent,
      .chunk =
          [&](const std::string& agent, std::span<const uint8_t> chunk) {
            notice.DataCame();
            return printer.Take({.agent = agent, .say_agent = !options.agent, .is_live = true},
                                chunk);
          },
      .say = [](const std::string& line) { Fail(Printable(line)); }};
  return stream::FollowNats(follow, [&] {
    notice.Look();
    return IsOver(tail);
  });
}

absl::Status TailAny(const Tail& tail, const TailOptions& options, follow::ChunkPrinter& printer,
                     WaitNotice& notice) {
  if (tail.broker) return TailBroker(tail, options, printer, notice);
  return tail.address ? TailCollector(tail, options, printer, notice)
                      : TailFolders(tail, printer, notice);
}

int RunTail(const TailOptions& options) {
  const auto tail = ParseTail(options);
  if (!tail.ok()) return Fail(tail.status());
  StopWaitsOnSignals();
  follow::ChunkPrinter printer(tail->format, WriteToStdout,
                               [](const std::string& line) { Fail(line); });
  WaitNotice notice(options.source);
  const absl::Status status = TailAny(*tail, options, printer, notice);
  if (printer.unusable_ticks() > 0) {
    Fail(absl::StrCat("warning: ", Plural(printer.unusable_ticks(), "sample"),
                      " could not be used: no vCPU set fits"));
  }
  if (printer.unreadable_chunks() > 0) {
    Fail(absl::StrCat("warning: ", Plural(printer.unreadable_chunks(), "chunk"),
                      " could not be read"));
  }
  if (printer.missed_records() > 0) {
    Fail(absl::StrCat("warning: ", Plural(printer.missed_records(), "record"),
                      " did not come from the collector: its folder has what there is of them"));
  }
  // Ctrl-C, or `| head` has seen enough.
  if (status.ok() || absl::IsCancelled(status) || WasStopped()) return kExitOk;
  return Fail(status);
}

}  // namespace

void AddTailCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TailOptions>();
  CLI::App* command =
      app.add_subcommand("tail", "Follow a collector, or a timeline that is being written");
  command->footer(kTailFooter);
  command
      ->add_option("SOURCE", options->source,
                   "address of a collector or broker, a collector's folder, or a timeline")
      ->type_name("TIMELINE|DIR|ADDR")
      ->required();
  command->add_option("--format", options->format, "what is written to standard output [text]")
      ->type_name("text|jsonl");
  command->add_option("-n,--ticks", options->ticks, "start with the last N ticks [10]")
      ->type_name("N");
  command->add_flag("--from-start", options->from_start, "begin with all that is there");
  command->add_option("-d,--duration", options->duration, "stop after this time")
      ->type_name("DURATION");
  command->add_option("--agent", options->agent, "only what this one sends")->type_name("ID");
  AddPeerOptions(*command, options->peer);
  AddNatsOptions(*command, options->nats);
  command->callback([options, &exit_code] { exit_code = RunTail(*options); });
}

}  // namespace vcpulse::tools

// `vcpulse top`: every vCPU on a terminal, live, of a file or from a collector.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "kvm/own_rights.h"
#include "monitor/follow/followed_folders.h"
#include "monitor/stream/nats/follower.h"
#include "monitor/stream/net/follower.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/top/actions.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/output.h"
#include "tools/vcpulse/record_options.h"
#include "tools/vcpulse/timeline_input.h"
#include "tools/vcpulse/uplink_options.h"
#include "tools/vcpulse/values.h"
#include "tools/vcpulse/view_thread.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kTopFooter =
    R"(SOURCE is one of
  a timeline    replayed, from its end backwards; one that is still written grows
  ADDR          the address of a collector (unix:PATH, tcp:HOST:PORT, tls:HOST:PORT) or of a broker
                (nats://HOST:PORT)
  DIR           a collector's folder, or one agent's in it: the last 6,000 ticks, and what comes
  NAME or PID   a VM that runs here
Without SOURCE and without --vm, --pid, --qmp or --tid it records all VMs of this host.

A VM is recorded as `vcpulse record` does it. -o keeps the timeline; without it the last 10 minutes
are kept in memory, at most 256 MiB, and w writes them to a file.

Keys: ? lists them, q leaves, space stops time, t and T step from tick to tick, e explains the verdict
of the chosen vCPU. --list-keys prints all of them. docs/top.md describes the screen.

Examples:
  vcpulse top                     all VMs of this host
  vcpulse top web.vpt             a recording, back and forth in time
  vcpulse top /srv/vcpulse        what a collector receives

Exit status:
  0  left by q, or ended by a signal
  2  an error; one line on stderr gives the reason

Environment:
  NO_COLOR  set: no colours; the characters tell the bands apart
  TERM      the terminal; xterm, screen, tmux, linux and vt100 work without terminfo files

Files:
  $XDG_CONFIG_HOME/vcpulse/keys  [~/.config/vcpulse/keys] other keys, see --keys)";

constexpr uint64_t kTicksOfFolder = 6000;  // ten minutes at 100 ms
constexpr int64_t kFolderPeriod_ns = 200'000'000;

struct TopOptions {
  std::string source;
  std::optional<std::string> keys;
  bool list_keys = false;
  RecordOptions record;
  RecordText text;
};

// A file of keys as it would be written to say what is so anyway.
std::string KeysText(const top::Keymap& keymap) {
  std::string text = "# ACTION = KEY...   replaces the keys of that action\n";
  for (const top::ActionInfo& info : top::ActionTable()) {
    absl::StrAppendFormat(&text, "%-14s = %-14s # %s\n", std::string(info.name),
                          absl::StrReplaceAll(keymap.KeysOf(info.action), {{", ", " "}}),
                          std::string(info.help));
  }
  return text;
}

// What a SOURCE that is no VM excludes, by name; nothing where all is well.
absl::Status CheckNoRecording(const CLI::App& command) {
  constexpr auto kAllowed = std::to_array<std::string_view>(
      {"SOURCE", "--keys", "--list-keys", "--cert", "--key", "--ca", "--insecure", "--agent-id",
       "--nats-creds", "--nats-nkey", "--nats-user", "--nats-password-file", "--help"});
  for (const CLI::Option* option : command.get_options()) {
    const std::string name =
        option->get_positional() ? "SOURCE" : "--" + option->get_lnames().front();
    if (option->count() == 0 || std::ranges::find(kAllowed, name) != kAllowed.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is for recording here; SOURCE has been recorded elsewhere"));
  }
  return absl::OkStatus();
}

int ViewFile(const TopOptions& options, const top::Keymap& keymap) {
  auto store = top::ChunkStore::OpenFile(options.source);
  if (!store.ok()) return Fail(store.status());
  terminal::Screen::HoldSignals();
  StopWaitsOnSignals();
  auto view = ViewThread::Open(
      {.source = {.name = Printable(std::filesystem::path(options.source).filename().string())},
       .keymap = keymap,
       .file = *std::move(store)});
  if (!view.ok()) return Fail(view.status());
  (*view)->Start({});
  (*view)->Wait();
  return kExitOk;
}

// Brings chunks from elsewhere to the view, on its own thread, until `stopped` returns true.
using Feed = std::function<absl::Status(ViewThread& view, const std::function<bool()>& stopped)>;

int ViewFeed(const TopOptions& options, const top::Keymap& keymap, const Feed& feed) {
  terminal::Screen::HoldSignals();
  StopWaitsOnSignals();
  auto view = ViewThread::Open(
      {.source = {.name = Printable(options.source), .is_followed = true}, .keymap = keymap});
  if (!view.ok()) return Fail(view.status());
  std::atomic<bool> stop = false;
  absl::Status status;
  std::thread feeder([&] {
    status = feed(**view, [&] { return stop || WasStopped(); });
    if (!status.ok() && !stop) (*view)->Leave();
    (*view)->SourceIsOver();
  });
  (*view)->Start({});
  (*view)->Wait();
  stop = true;
  feeder.join();
  return status.ok() || absl::IsCancelled(status) ? kExitOk : Fail(status);
}

absl::StatusOr<Feed> FolderFeed(const std::string& path) {
  auto opened = follow::FollowedFolders::Open({.path = path, .last_ticks = kTicksOfFolder});
  if (!opened.ok()) return opened.status();
  auto folders = std::make_shared<follow::FollowedFolders>(*std::move(opened));
  return Feed([folders](ViewThread& view, const std::function<bool()>& stopped) {
    while (!stopped()) {
      absl::Status status = folders->Poll(
          [&](const follow::ChunkOwner& owner, std::span<const uint8_t> chunk, uint64_t) {
            view.Take(owner.agent.value_or(""), chunk);
            return stopped() ? absl::CancelledError("") : absl::OkStatus();
          });
      if (!status.ok()) return status;
      if (status = WaitUntil(MonotonicNow_ns() + kFolderPeriod_ns); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Feed> BrokerFeed(const TopOptions& options) {
  auto server =
      ParseNats("SOURCE", {options.source}, options.text.uplink.nats, options.text.uplink.peer);
  if (!server.ok()) return server.status();
  return Feed([server = *std::move(server), address = options.source](
                  ViewThread& view, const std::function<bool()>& stopped) {
    return stream::FollowNats({.server = server,
                               .address = address,
                               .agent_id = std::nullopt,
                               .chunk =
                                   [&](const std::string& agent, std::span<const uint8_t> chunk) {
                                     view.Take(agent, chunk);
                                     return absl::OkStatus();
                                   },
                               .say = [&](const std::string& line) { view.Say(Printable(line)); }},
                              stopped);
  });
}

absl::StatusOr<Feed> CollectorFeed(const TopOptions& options) {
  if (IsNatsAddress(options.source)) return BrokerFeed(options);
  auto address = stream::ParseDestination(options.source);
  if (!address.ok()) return address.status();
  const PeerOptions& peer = options.text.uplink.peer;
  auto credentials = CredentialsFor({*address}, peer);
  if (!credentials.ok()) return credentials.status();
  auto identity = IdentityOf(peer, "/");
  if (!identity.ok()) return identity.status();
  return Feed([address = *std::move(address), credentials = *std::move(credentials),
               identity = *std::move(identity),
               insecure = peer.insecure](ViewThread& view, const std::function<bool()>& stopped) {
    return stream::Follow({.address = address,
                           .identity = identity,
                           .credentials = credentials,
                           .allow_insecure = insecure,
                           .chunk =
                               [&](const v1::StreamInfo& info, std::span<const uint8_t> chunk) {
                                 view.Take(info.agent_id(), chunk);
                                 return absl::OkStatus();
                               },
                           .say = [&](const std::string& line) { view.Say(Printable(line)); }},
                          stopped);
  });
}

int RecordAndView(const TopOptions& options, const top::Keymap& keymap) {
  RecordOptions record = options.record;
  if (!options.source.empty() && (record.target.IsOne() || record.target.all)) {
    return Fail("SOURCE and one of --vm, --pid, --qmp, --tid and --all cannot be used together");
  }
  if (!options.source.empty()) {
    const auto pid = ParseNumber<pid_t>(options.source);
    if (pid) {
      record.target.pid = *pid;
    } else {
      record.target.vm = options.source;
    }
  } else if (!record.target.IsOne()) {
    record.target.all = true;
  }
  RecordText text = options.text;
  const bool keeps = text.output.has_value();
  auto parsed = ParseRecording(record, text);
  if (!parsed.ok()) return Fail(parsed.status());
  if (!keeps) parsed->output.clear();
  if (absl::Status status = parsed->Validate(); !status.ok()) return Fail(status);
  return RecordWithView(*parsed, keymap, true);
}

int RunTop(const TopOptions& options, const CLI::App& command) {
  const auto keymap = LoadKeymap(options.keys);
  if (!keymap.ok()) return Fail(keymap.status());
  if (options.list_keys) return WriteStdout(KeysText(*keymap));
  const std::string& source = options.source;
  std::error_code ignored;
  const bool is_address = !source.empty() && LooksLikeAddress(source);
  const bool is_there = !source.empty() && std::filesystem::exists(source, ignored);
  if (!is_address && !is_there) {
    if (source.find('/') != std::string::npos || source.ends_with(".vpt")) {
      return Fail(absl::StrCat(QuotedPath(source), ": no such file or folder"));
    }
    return RecordAndView(options, *keymap);
  }
  if (absl::Status status = CheckNoRecording(command); !status.ok()) return Fail(status);
  // What others have written is read without any right that it does not take.
  (void)kvm::DropRights({});
  if (is_there && std::filesystem::is_regular_file(source, ignored)) {
    return ViewFile(options, *keymap);
  }
  const auto feed = is_address ? CollectorFeed(options) : FolderFeed(source);
  if (!feed.ok()) return Fail(feed.status());
  return ViewFeed(options, *keymap, *feed);
}

}  // namespace

void AddTopCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TopOptions>();
  options->record.tool_version = VCPULSE_VERSION;
  CLI::App* command = app.add_subcommand("top", "Watch every vCPU, live or in a recording");
  command->footer(kTopFooter);
  command->add_option("SOURCE", options->source, "what to watch [all VMs of this host]")
      ->type_name("VM|TIMELINE|ADDR|DIR");
  command->add_option("--keys", options->keys, "other keys; lines \"ACTION = KEY...\"")
      ->type_name("FILE");
  command->add_flag("--list-keys", options->list_keys,
                    "print all actions with their keys, in the form of --keys, and end");
  AddRecordingOptions(*command, options->record, options->text, "none: 10 minutes in memory");
  command->callback([options, command, &exit_code] { exit_code = RunTop(*options, *command); });
}

}  // namespace vcpulse::tools

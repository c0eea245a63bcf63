#include "tools/vcpulse/uplink_options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "kvm/host.h"
#include "monitor/stream/nats/uplink_way.h"
#include "monitor/stream/protocol/agent_id.h"
#include "tools/vcpulse/values.h"

namespace vcpulse::tools {
namespace {

constexpr const char* kStreamingGroup = "Streaming (docs/streaming.md)";
constexpr absl::Duration kLongestMargin = absl::Minutes(4);
constexpr uint64_t kSmallestSpool = 1u << 20;

// The value of a variable of the environment that says something.
std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

bool AnyTls(const std::vector<stream::Address>& addresses) {
  return std::ranges::any_of(addresses, [](const stream::Address& address) {
    return address.kind == stream::Address::Kind::kTls;
  });
}

// The first option that was given although it means nothing without --to.
std::string_view GivenWithoutTo(const UplinkOptions& options) {
  if (options.peer.agent_id) return "--agent-id";
  if (const std::string nats = GivenWithoutNats(options.nats); !nats.empty()) {
    return "--nats-creds, --nats-nkey, --nats-user and --nats-password-file";
  }
  if (options.peer.certificate) return "--cert";
  if (options.peer.key) return "--key";
  if (options.peer.authorities) return "--ca";
  if (options.peer.insecure) return "--insecure";
  if (options.spool_dir) return "--spool-dir";
  if (options.spool_size) return "--spool-size";
  if (options.spool_margin) return "--spool-margin";
  if (options.drain) return "--drain";
  if (options.require_collector) return "--require-collector";
  if (options.require_delivery) return "--require-delivery";
  return "";
}

absl::StatusOr<stream::Spool::Options> ParseSpool(const UplinkOptions& options) {
  stream::Spool::Options spool;
  if (options.in_memory) return spool;
  if (options.spool_size) {
    const auto size = ParseSizeOption("--spool-size", *options.spool_size);
    if (!size.ok()) return size.status();
    if (*size < kSmallestSpool) {
      return absl::InvalidArgumentError(
          absl::StrCat("--spool-size: ", *options.spool_size, " is less than 1MiB"));
    }
    spool.max_disk_bytes = *size;
  }
  if (options.spool_dir && options.spool_dir->empty()) {
    return absl::InvalidArgumentError("--spool-dir: the name is empty");
  }
  absl::StatusOr<std::string> directory =
      options.spool_dir ? *options.spool_dir : DefaultSpoolDirectory();
  if (!directory.ok()) return directory.status();
  spool.directory = *std::move(directory);
  return spool;
}

absl::Status ParseWayToNats(const UplinkOptions& options, stream::Uplink::Options& uplink) {
  if (!std::ranges::all_of(options.to, IsNatsAddress)) {
    return absl::InvalidArgumentError(
        "--to: servers of NATS and collectors cannot be used together: a stream goes one way");
  }
  auto server = ParseNats("--to", options.to, options.nats, options.peer);
  if (!server.ok()) return server.status();
  stream::NatsUplinkOptions nats{.server = *std::move(server)};
  if (options.in_memory) nats.margin = std::chrono::nanoseconds(0);  // what is replayed is there
  if (options.spool_margin) {
    const auto margin = ParseDurationOption("--spool-margin", *options.spool_margin);
    if (!margin.ok()) return margin.status();
    if (*margin > kLongestMargin) {
      return absl::InvalidArgumentError(
          absl::StrCat("--spool-margin: ", *options.spool_margin,
                       " is more than 4m, and the broker knows what it has for 5m"));
    }
    nats.margin = absl::ToChronoNanoseconds(*margin);
  }
  uplink.way_name = stream::NamesOf(nats.server);
  uplink.make_way = stream::WayToNats(std::move(nats));
  return absl::OkStatus();
}

absl::Status ParseWayToCollectors(const UplinkOptions& options, stream::Uplink::Options& uplink) {
  const std::string flag = options.spool_margin ? "--spool-margin" : GivenWithoutNats(options.nats);
  if (!flag.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": it is for --to nats://HOST:PORT, and that is not given"));
  }
  auto addresses = ParseAddresses("--to", options.to, stream::ParseDestination);
  if (!addresses.ok()) return addresses.status();
  uplink.addresses = *std::move(addresses);
  auto credentials = CredentialsFor(uplink.addresses, options.peer);
  if (!credentials.ok()) return credentials.status();
  uplink.credentials = *std::move(credentials);
  uplink.allow_insecure = options.peer.insecure;
  return absl::OkStatus();
}

}  // namespace

void AddCredentialOptions(CLI::App& command, PeerOptions& options) {
  const std::array<CLI::Option*, 4> all = {
      command.add_option("--cert", options.certificate, "TLS: own certificate, PEM")
          ->type_name("FILE"),
      command.add_option("--key", options.key, "TLS: private key of --cert, PEM")
          ->type_name("FILE"),
      command.add_option("--ca", options.authorities, "TLS: the peer's CA certificates, PEM")
          ->type_name("FILE"),
      command.add_flag(
          "--insecure", options.insecure,
          "allow unencrypted tcp: beyond this machine; anyone on the path can read it"),
  };
  for (CLI::Option* option : all) option->group(kStreamingGroup);
}

void AddPeerOptions(CLI::App& command, PeerOptions& options) {
  command
      .add_option(
          "--agent-id", options.agent_id,
          "name of this host in timelines and at the collector: letters, digits and . _ - : / "
          "@; with TLS a name in --cert [the full host name]")
      ->type_name("ID")
      ->group(kStreamingGroup);
  AddCredentialOptions(command, options);
}

void AddUplinkOptions(CLI::App& command, UplinkOptions& options) {
  AddRepeatable(command, "--to", options.to,
                "stream to this collector, or server of NATS; repeat to add fallbacks")
      ->type_name("unix:PATH|tcp:HOST:PORT|tls:HOST:PORT|nats://HOST:PORT")
      ->group(kStreamingGroup);
  AddPeerOptions(command, options.peer);
  AddNatsOptions(command, options.nats);
  const std::array<CLI::Option*, 6> all = {
      command
          .add_option("--spool-dir", options.spool_dir,
                      "directory for data that the collector does not have yet [see Files]")
          ->type_name("DIR"),
      command
          .add_option("--spool-size", options.spool_size,
                      "size limit; beyond it the oldest data is dropped and reported as lost "
                      "[256MiB]")
          ->type_name("SIZE"),
      command
          .add_option("--spool-margin", options.spool_margin,
                      "NATS: keep what the broker has for so long, should all its servers lose "
                      "power at once [150s]")
          ->type_name("DURATION"),
      command.add_flag("--require-collector", options.require_collector,
                       "fail where no collector can be reached within 10 s of the start"),
      command.add_flag("--require-delivery", options.require_delivery,
                       "fail where not all data is acknowledged when --drain is over"),
      command
          .add_option("--drain", options.drain,
                      "at the end, wait so long until all data is acknowledged [5s]")
          ->type_name("DURATION"),
  };
  for (CLI::Option* option : all) option->group(kStreamingGroup);
}

bool LooksLikeAddress(const std::string& text) {
  return text.starts_with("unix:") || text.starts_with("tcp:") || text.starts_with("tls:") ||
         IsNatsAddress(text);
}

absl::StatusOr<std::vector<stream::Address>> ParseAddresses(const std::string& flag,
                                                            const std::vector<std::string>& texts,
                                                            AddressParser parse) {
  std::vector<stream::Address> addresses;
  for (const std::string& text : texts) {
    auto address = parse(text);
    if (!address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": ", address.status().message()));
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

absl::StatusOr<stream::CredentialFiles> CredentialsFor(
    const std::vector<stream::Address>& addresses, const PeerOptions& options) {
  const bool any = options.certificate || options.key || options.authorities || options.revoked;
  const bool all = options.certificate && options.key && options.authorities;
  if (any && !AnyTls(addresses)) {
    return absl::InvalidArgumentError(
        "--cert, --key and --ca: they are for tls: addresses, and none is given");
  }
  if (!all && AnyTls(addresses)) {
    const char* missing = !options.certificate ? "--cert" : !options.key ? "--key" : "--ca";
    return absl::InvalidArgumentError(
        absl::StrCat("a tls: address needs --cert, --key and --ca, one PEM file each: ", missing,
                     " is not given"));
  }
  stream::CredentialFiles files;
  if (all) {
    files = {.certificate = *options.certificate,
             .key = *options.key,
             .authorities = *options.authorities,
             .revoked = options.revoked.value_or("")};
  }
  return files;
}

absl::StatusOr<stream::AgentIdentity> IdentityOf(const PeerOptions& options,
                                                 const std::string& root) {
  const kvm::HostFacts host = kvm::ReadHostFacts(root);
  stream::AgentIdentity identity{
      .agent_id = options.agent_id ? *options.agent_id : stream::OwnHostName(),
      .host_name = host.host_name,
      .boot_id = host.boot_id,
      .tool_version = VCPULSE_VERSION};
  if (const absl::Status status = stream::CheckAgentId(identity.agent_id); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--agent-id: ", status.message(),
                     options.agent_id ? "" : " (this host's name; give --agent-id another one)"));
  }
  return identity;
}

absl::StatusOr<std::string> DefaultSpoolDirectory() {
  // systemd separates several by colons.
  if (const auto state = Variable("STATE_DIRECTORY")) {
    return state->substr(0, state->find(':')) + "/spool";
  }
  if (geteuid() == 0) return std::string("/var/lib/vcpulse/spool");
  if (const auto state = Variable("XDG_STATE_HOME")) return *state + "/vcpulse/spool";
  if (const auto home = Variable("HOME")) return *home + "/.local/state/vcpulse/spool";
  return absl::FailedPreconditionError(
      "--spool-dir: there is no home directory to keep a spool in: name a directory");
}

absl::StatusOr<std::optional<stream::RecordUplink::Options>> ParseUplink(
    const UplinkOptions& options, const std::string& root) {
  if (options.to.empty()) {
    const std::string flag(GivenWithoutTo(options));
    if (flag.empty()) return std::nullopt;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": it means nothing without --to ADDR, a collector to stream to"));
  }
  stream::RecordUplink::Options request;
  absl::Status way = std::ranges::any_of(options.to, IsNatsAddress)
                         ? ParseWayToNats(options, request.uplink)
                         : ParseWayToCollectors(options, request.uplink);
  if (!way.ok()) return way;
  auto identity = IdentityOf(options.peer, root);
  if (!identity.ok()) return identity.status();
  request.uplink.identity = *std::move(identity);
  auto spool = ParseSpool(options);
  if (!spool.ok()) return spool.status();
  request.uplink.spool = *std::move(spool);
  if (options.drain) {
    const auto drain = ParseDurationOption("--drain", *options.drain);
    if (!drain.ok()) return drain.status();
    request.drain = *drain;
  }
  request.require_collector = options.require_collector;
  request.require_delivery = options.require_delivery;
  return request;
}

}  // namespace vcpulse::tools

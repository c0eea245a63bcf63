#include "tools/vcpulse/nats_options.h"

#include <array>
#include <string_view>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/stream/protocol/address.h"
#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {
namespace {

constexpr std::string_view kPlain = "nats://";
constexpr std::string_view kWithTls = "nats+tls://";
constexpr const char* kNatsGroup = "NATS (docs/fleet.md)";
constexpr uint16_t kNatsPort = 4222;

}  // namespace

void AddNatsOptions(CLI::App& command, NatsText& text) {
  const std::array<CLI::Option*, 4> all = {
      command.add_option("--nats-creds", text.credentials, "a user's credentials (.creds)"),
      command.add_option("--nats-nkey", text.nkey,
                         "a user's seed and public key, as `nk -gen user -pubout` writes them"),
      command.add_option("--nats-user", text.user, "a user's name, with --nats-password-file"),
      command.add_option("--nats-password-file", text.password_file,
                         "its first line is the password"),
  };
  for (CLI::Option* option : all) option->type_name("FILE")->group(kNatsGroup);
  all[2]->type_name("NAME");
}

bool IsNatsAddress(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  return lower.starts_with("nats:") || lower.starts_with("nats+tls:");
}

std::string GivenWithoutNats(const NatsText& text) {
  if (text.credentials) return "--nats-creds";
  if (text.nkey) return "--nats-nkey";
  if (text.user) return "--nats-user";
  if (text.password_file) return "--nats-password-file";
  return "";
}

absl::StatusOr<stream::NatsOptions> ParseNats(const std::string& flag,
                                              const std::vector<std::string>& addresses,
                                              const NatsText& text, const PeerOptions& peer) {
  stream::NatsOptions options{.name = "vcpulse",
                              .tls = peer.authorities.has_value() || peer.certificate.has_value(),
                              .authorities = peer.authorities.value_or(""),
                              .certificate = peer.certificate.value_or(""),
                              .key = peer.key.value_or(""),
                              .credentials = text.credentials.value_or(""),
                              .nkey = text.nkey.value_or(""),
                              .user = text.user.value_or(""),
                              .password_file = text.password_file.value_or("")};
  for (const std::string& address : addresses) {
    const std::string lower = absl::AsciiStrToLower(address);
    const bool with_tls = lower.starts_with(kWithTls);
    const std::string_view scheme = with_tls ? kWithTls : kPlain;
    std::string rest = lower.starts_with(scheme) ? address.substr(scheme.size()) : "";
    if (rest.ends_with('/')) rest.pop_back();
    if (rest.find('@') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag,
          ": an address holds no user and no password, which everyone on this host could "
          "read: give --nats-user and --nats-password-file"));
    }
    const size_t bracket = rest.rfind(']');
    const size_t colon = rest.rfind(':');
    if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
      absl::StrAppend(&rest, ":", kNatsPort);
    }
    if (!stream::ParseDestination("tcp:" + rest).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": '", Printable(address),
          "' is not an address of NATS: write nats://HOST:PORT or ", "nats+tls://HOST:PORT"));
    }
    options.tls = options.tls || with_tls;
    options.urls.push_back(absl::StrCat(std::string(kPlain), rest));
    options.addresses.push_back(absl::StrCat(std::string(scheme), rest));
  }
  if (absl::Status status = stream::CheckNatsOptions(options); !status.ok()) return status;
  return options;
}

}  // namespace vcpulse::tools

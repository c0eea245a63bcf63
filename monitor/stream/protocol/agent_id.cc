#include "monitor/stream/protocol/agent_id.h"

#include <openssl/sha.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/core/check.h"

namespace vcpulse::stream {
namespace {

constexpr size_t kMaxIdBytes = 253;
constexpr size_t kMaxFolderBytes = 255;
constexpr size_t kHashDigits = 16;
constexpr char kUpperHex[] = "0123456789ABCDEF";
constexpr char kLowerHex[] = "0123456789abcdef";

// Not isalnum: it asks the locale.
bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool MayBeInId(char c) {
  return IsLetterOrDigit(c) || std::string_view("._-:/@").find(c) != std::string_view::npos;
}

// The whole id, however long.
std::string Escaped(const std::string& id) {
  std::string out;
  for (size_t i = 0; i < id.size(); ++i) {
    const char c = id[i];
    if (IsLetterOrDigit(c) || c == '-' || c == '_' || (c == '.' && i > 0)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'=', kUpperHex[byte >> 4], kUpperHex[byte & 0xf]};
    }
  }
  return out.empty() ? "=" : out;
}

// 16 hexadecimal digits of SHA-1. The first is a lower-case letter, which never follows a = that
// Escaped made.
std::string HashOf(const std::string& id) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  VCPULSE_CHECK(
      SHA1(reinterpret_cast<const unsigned char*>(id.data()), id.size(), digest) != nullptr,
      "OpenSSL has no SHA-1");
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof hash; ++i) hash = hash << 8 | digest[i];
  std::string out(kHashDigits, 'a');
  for (size_t i = kHashDigits; i-- > 1; hash >>= 4) out[i] = kLowerHex[hash & 0xf];
  out[0] = kLowerHex[10 + hash % 6];
  return out;
}

std::optional<char> FromUpperHex(char high, char low) {
  const size_t h = std::string_view(kUpperHex).find(high);
  const size_t l = std::string_view(kUpperHex).find(low);
  if (h == std::string_view::npos || l == std::string_view::npos) return std::nullopt;
  return static_cast<char>(h * 16 + l);
}

}  // namespace

absl::Status CheckAgentId(const std::string& id) {
  const auto bad = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(Quoted(id), " cannot name an agent: ", why));
  };
  if (id.empty()) return bad("it is empty");
  if (id.size() > kMaxIdBytes) {
    return bad(absl::StrCat("it has ", id.size(), " bytes, at most ", kMaxIdBytes, " may be"));
  }
  if (!IsLetterOrDigit(id.front())) return bad("it must begin with a letter or a digit");
  if (!std::ranges::all_of(id, MayBeInId)) {
    return bad("only letters, digits and . _ - : / @ may be in it");
  }
  return absl::OkStatus();
}

std::string FolderOf(const std::string& agent_id) {
  std::string folder = Escaped(agent_id);
  if (folder.size() <= kMaxFolderBytes) return folder;
  folder.resize(kMaxFolderBytes - 1 - kHashDigits);
  return absl::StrCat(folder, "=", HashOf(agent_id));
}

std::string AgentIdOf(const std::string& folder) {
  std::string id;
  for (size_t i = 0; i < folder.size(); ++i) {
    if (folder[i] != '=' || folder.size() - i < 3) {
      id += folder[i];
      continue;
    }
    const std::optional<char> byte = FromUpperHex(folder[i + 1], folder[i + 2]);
    if (!byte) return folder;
    id += *byte;
    i += 2;
  }
  if (folder == "=") id.clear();
  return FolderOf(id) == folder ? id : folder;
}

std::string HostPartitionOf(const std::string& folder) {
  std::string partition = "host=";
  for (size_t i = 0; i < folder.size(); ++i) {
    const bool is_escape = folder[i] == '=' && folder.size() - i > 2 &&
                           FromUpperHex(folder[i + 1], folder[i + 2]).has_value();
    partition += folder[i] != '=' ? std::string(1, folder[i]) : is_escape ? "%" : "%3D";
  }
  if (partition.size() <= kMaxFolderBytes) return partition;
  partition.resize(kMaxFolderBytes - 1 - kHashDigits);
  const size_t escape = partition.rfind('%');
  if (escape != std::string::npos && partition.size() - escape < 3) partition.resize(escape);
  return absl::StrCat(partition, "-", HashOf(folder));
}

}  // namespace vcpulse::stream

#include "monitor/stream/nats/nkey.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vcpulse::stream {
namespace {

// github.com/nats-io/nkeys: a public key begins with the byte of its kind, a seed with the five
// bits that make S, and the kind's byte after them.
constexpr uint8_t kUser = 20 << 3;
constexpr uint8_t kSeed = 18 << 3;
constexpr size_t kKeyBytes = 32;
constexpr size_t kChecksumBytes = 2;

// RFC 4648, without padding.
std::optional<std::vector<uint8_t>> FromBase32(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const size_t digit = kDigits.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 5 | static_cast<uint32_t>(digit)) & 0xfff;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

// CRC-16/XMODEM.
uint16_t ChecksumOf(std::span<const uint8_t> bytes) {
  uint32_t crc = 0;
  for (const uint8_t byte : bytes) {
    crc ^= uint32_t{byte} << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
  }
  return static_cast<uint16_t>(crc);
}

// What is before the key of such a text; nothing where it is none.
std::optional<std::vector<uint8_t>> PrefixOf(std::string_view text, size_t prefix_bytes) {
  auto bytes = FromBase32(text);
  if (!bytes || bytes->size() != prefix_bytes + kKeyBytes + kChecksumBytes) return std::nullopt;
  const auto body = std::span<const uint8_t>(*bytes).first(prefix_bytes + kKeyBytes);
  const uint16_t checksum =
      static_cast<uint16_t>((*bytes)[body.size()] | (*bytes)[body.size() + 1] << 8);
  if (ChecksumOf(body) != checksum) return std::nullopt;
  bytes->resize(prefix_bytes);
  return bytes;
}

}  // namespace

bool IsUserSeed(std::string_view text) {
  const auto prefix = PrefixOf(text, 2);
  return prefix && (*prefix)[0] == (kSeed | kUser >> 5) &&
         (*prefix)[1] == static_cast<uint8_t>((kUser & 31) << 3);
}

bool IsUserPublicKey(std::string_view text) {
  const auto prefix = PrefixOf(text, 1);
  return prefix && (*prefix)[0] == kUser;
}

}  // namespace vcpulse::stream

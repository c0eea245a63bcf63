#pragma once

#include <string_view>

namespace vcpulse::stream {

// Whether a text is a user's nkey as NATS writes them: base32 of a kind, 32 bytes and a checksum.
bool IsUserSeed(std::string_view text);       // the secret half, SU...
bool IsUserPublicKey(std::string_view text);  // U...

}  // namespace vcpulse::stream

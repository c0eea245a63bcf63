#pragma once

#include <string>
#include <string_view>

namespace vcpulse::page {

// `bytes` as a zlib stream (RFC 1950), which browsers inflate by themselves.
std::string Deflate(std::string_view bytes);

}  // namespace vcpulse::page

#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "kvm/base/text.h"

namespace vcpulse::fuzz {

inline void Check(bool condition) {
  if (!condition) std::abort();
}

// What people read is one line of valid UTF-8 without what a terminal obeys.
inline void CheckMessage(std::string_view message) {
  Check(!message.empty() && Printable(message) == message);
  for (size_t i = 0; i < message.size();) {
    const size_t length = Utf8SequenceLength(message.substr(i));
    Check(length > 0);
    i += length;
  }
}

}  // namespace vcpulse::fuzz

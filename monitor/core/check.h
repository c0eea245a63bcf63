#pragma once

// VCPULSE_CHECK: for our own bugs alone, never for what a peer, a file or a user can bring about.

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vcpulse {

// Throws std::logic_error that names the place and says `words`.
[[noreturn]] inline void ThrowBug(std::string_view words, std::source_location at) {
  throw std::logic_error("a bug of vcpulse: " + std::string(at.file_name()) + ":" +
                         std::to_string(at.line()) + ": " + std::string(words));
}

}  // namespace vcpulse

// Throws std::logic_error unless `condition` holds; `words`, a text that says what is wrong, is
// made only then.
#define VCPULSE_CHECK(condition, words)                                            \
  do {                                                                             \
    if (!(condition)) vcpulse::ThrowBug((words), std::source_location::current()); \
  } while (false)

#pragma once

// Whom an expectation (`check`) or a limit (`compare --fail-if`) is about: what both begin with.

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kvm/base/lexer.h"
#include "monitor/check/expression.h"

namespace vcpulse::check {

// Where the keys of a selector stood.
struct SelectorKeys {
  std::optional<size_t> vm{};
  std::optional<size_t> vcpu{};
  std::optional<size_t> phase{};
};

// [vm=...] [vcpu=...] [phase=...] and the ':' behind them, or nothing at all. Errors: those of the
// lexer.
absl::Status ParseSelector(Lexer& lexer, Selector& selector, std::optional<std::string>& phase,
                           SelectorKeys& keys);

}  // namespace vcpulse::check

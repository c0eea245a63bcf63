#pragma once

// The words that expectations (`check`) and limits (`compare --fail-if`) are made of, and what both
// begin with: whom they are about. Errors are InvalidArgument, one line that begins with "column
// N: " (from 1, in bytes) and says what was found there and what is allowed.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "monitor/check/expression.h"

namespace vcpulse::check {

class Lexer {
 public:
  // Without spaces at its end.
  explicit Lexer(std::string_view text);

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == text_.size(); }
  bool Is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  // Passes over `c`; false where it does not stand here.
  bool Take(char c);
  void SkipSpaces();
  // Letters, digits, '_' and '.'.
  std::string_view TakeWord();
  // All but spaces.
  std::string_view TakeUnspaced();
  // Of '<', '>' and '='.
  std::string_view TakeComparison();
  // NAME, "NAME" or *, which is nothing. `key` is what it is the value of.
  absl::Status TakeName(std::string_view key, std::optional<std::string>& name);
  // *, which is nothing, or N, N-M and several of them.
  absl::Status TakeVcpus(std::vector<IndexRange>& vcpus);
  std::string_view Rest() const { return text_.substr(at_); }

  // Whether a selector stands here: a word and '=' that are no quantity with a wrong comparison.
  bool AtSelector() const;

  absl::Status Wrong(size_t at, std::string_view what) const;
  // `found` stands at `at`, or nothing does: then what is there up to a space is shown.
  absl::Status NoneOf(size_t at, std::string_view found, std::string_view allowed) const;

 private:
  template <typename Belongs>
  std::string_view TakeWhile(const Belongs& belongs);
  absl::Status ParseRange(std::string_view item, size_t at, IndexRange& range) const;

  std::string_view text_;
  size_t at_ = 0;
};

// What was found, as a message shows it: one line in quotes, never long.
std::string Quoted(std::string_view found);

// Where the keys of a selector stood.
struct SelectorKeys {
  std::optional<size_t> vm{};
  std::optional<size_t> vcpu{};
  std::optional<size_t> phase{};
};

// [vm=...] [vcpu=...] [phase=...] and the ':' behind them, or nothing at all. `phase` is null where
// it takes none.
absl::Status ParseSelector(Lexer& lexer, Selector& selector, std::optional<std::string>* phase,
                           SelectorKeys& keys);

}  // namespace vcpulse::check

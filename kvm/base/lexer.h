#pragma once

// The words of a line that a user typed, from left to right, and what is wrong with one. Errors are
// InvalidArgument, one line that begins with "column N: " (from 1, in bytes) and says what was
// found there and what is allowed.

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace vcpulse {

class Lexer {
 public:
  // Without spaces at its end.
  explicit Lexer(std::string_view text);

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == text_.size(); }
  bool Is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  // Passes over `c`; false where it does not stand here.
  bool Take(char c);
  // All that `belongs`, which is called with each char.
  template <typename Belongs>
  std::string_view TakeWhile(const Belongs& belongs) {
    const size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  void SkipSpaces();
  // Letters, digits, '_' and '.'.
  std::string_view TakeWord();
  // The same and '-', as in "ipc-bands".
  std::string_view TakeHyphenated();
  // All but spaces.
  std::string_view TakeUnspaced();
  // Of '<', '>' and '='.
  std::string_view TakeComparison();
  std::string_view Rest() const { return text_.substr(at_); }

  absl::Status Wrong(size_t at, std::string_view what) const;
  // `found` stands at `at`, or nothing does: then what is there up to a space is shown. `allowed`
  // are names with ", " between them.
  absl::Status NoneOf(size_t at, std::string_view found, std::string_view allowed) const;
  // Likewise; `what` is one thing, with its article.
  absl::Status NotA(size_t at, std::string_view found, std::string_view what) const;

 private:
  std::string_view ShownAt(size_t at, std::string_view found) const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace vcpulse

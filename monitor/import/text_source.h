#pragma once

// Text of any length, piece by piece, so that no more of it is in memory than a reader needs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vcpulse::importing {

class TextSource {
 public:
  virtual ~TextSource() = default;

  // The next piece, whole rows of text; empty at the end. Valid until the next call. Errors: of
  // reading, naming the file.
  virtual absl::StatusOr<std::string_view> Next() = 0;
  // The first piece comes next.
  virtual void Rewind() = 0;
};

// Text that is in memory, which must outlive it: one piece.
class WholeText : public TextSource {
 public:
  explicit WholeText(std::string_view text) : text_(text) {}

  absl::StatusOr<std::string_view> Next() override;
  void Rewind() override { given_ = false; }

 private:
  std::string_view text_;
  bool given_ = false;
};

// Reads at most as many bytes as fit from `offset` on; 0 at the end.
using ReadAt = std::function<absl::StatusOr<size_t>(uint64_t offset, std::span<char> into)>;

// Text of a file, in pieces that end behind a line feed, unless a row is longer than any that the
// readers take. What is appended to the file after the first reading is not read.
class PiecedText : public TextSource {
 public:
  // With `quotes`, a line feed between double quotes ends no row, as in CSV. `block` bytes are read
  // at once.
  PiecedText(ReadAt read, bool quotes, size_t block = size_t{1} << 20)
      : read_(std::move(read)), quotes_(quotes), block_(block) {}

  absl::StatusOr<std::string_view> Next() override;
  void Rewind() override;

 private:
  ReadAt read_;
  bool quotes_;
  size_t block_;
  std::string buffer_;
  size_t given_ = 0;               // bytes of it that the last piece had
  uint64_t offset_ = 0;            // of what is read next
  std::optional<uint64_t> end_{};  // of the text, once it was read
};

}  // namespace vcpulse::importing

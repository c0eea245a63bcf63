#include "monitor/import/text_source.h"

#include <algorithm>

namespace vcpulse::importing {
namespace {

// Above what the cells of a CSV row or a JSON line may hold: its reader refuses such a row.
constexpr size_t kLongestRow = size_t{16} << 20;

}  // namespace

absl::StatusOr<std::string_view> WholeText::Next() {
  if (given_) return std::string_view();
  given_ = true;
  return text_;
}

absl::StatusOr<std::string_view> PiecedText::Next() {
  buffer_.erase(0, given_);
  given_ = 0;
  size_t scanned = 0;
  bool in_quotes = false;
  while (given_ == 0) {
    const size_t before = buffer_.size();
    buffer_.resize(before + block_);
    const size_t wanted =
        end_ ? static_cast<size_t>(std::min<uint64_t>(block_, *end_ - offset_)) : block_;
    absl::StatusOr<size_t> got =
        wanted == 0 ? size_t{0} : read_(offset_, {&buffer_[before], wanted});
    buffer_.resize(before + (got.ok() ? *got : 0));
    if (!got.ok()) return got.status();
    offset_ += *got;
    if (*got == 0) {
      end_ = offset_;
      given_ = buffer_.size();
      break;
    }
    for (; scanned < buffer_.size(); ++scanned) {
      if (quotes_ && buffer_[scanned] == '"') in_quotes = !in_quotes;
      if (buffer_[scanned] == '\n' && !in_quotes) given_ = scanned + 1;
    }
    if (buffer_.size() > kLongestRow && given_ == 0) given_ = buffer_.size();
  }
  return std::string_view(buffer_).substr(0, given_);
}

void PiecedText::Rewind() {
  buffer_.clear();
  given_ = 0;
  offset_ = 0;
}

}  // namespace vcpulse::importing

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vcpulse::parquet {

// The different numbers of a column chunk, and each of its numbers as an index of them. Memory is
// kept from one to the next. One thread.
class NumberDictionary {
 public:
  // False where `numbers` has too many different ones for a dictionary to be of use; entries and
  // indices are then of no use either.
  bool Make(std::span<const uint64_t> numbers);

  // In the order in which they first come.
  std::span<const uint64_t> entries() const { return entries_; }
  std::span<const uint32_t> indices() const { return indices_; }

 private:
  uint32_t& PlaceOf(uint64_t number);
  void Grow();

  std::vector<uint64_t> entries_;
  std::vector<uint32_t> indices_;
  std::vector<uint32_t> places_;  // open addressing: an index plus 1; 0 is free
  int shift_ = 0;                 // of a hash, to a place
};

// The different texts of a column chunk, kept as they come. One thread.
class TextDictionary {
 public:
  // The index of `text`, which is copied where it is new.
  uint32_t IndexOf(std::string_view text) {
    if (latest_ < texts_.size() && texts_[latest_] == text) return latest_;
    return latest_ = Find(text);
  }
  const std::deque<std::string>& texts() const { return texts_; }
  size_t bytes() const { return bytes_; }  // of all texts
  void Clear();

 private:
  uint32_t Find(std::string_view text);

  std::deque<std::string> texts_;  // whose addresses stay
  std::unordered_map<std::string_view, uint32_t> indices_;
  uint32_t latest_ = 0;
  size_t bytes_ = 0;
};

}  // namespace vcpulse::parquet

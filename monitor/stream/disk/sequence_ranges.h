#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace vcpulse::stream {

// Ranges of sequence numbers, inclusive. Neighbours are one.
//
// Where several collectors share a stream, each has every third chunk or so, and a range for each
// of them: ten thousands a day. So they lie in blocks, as the differences of their ends: a few
// bytes each.
class SequenceRanges {
 public:
  using Range = std::pair<uint64_t, uint64_t>;  // first and last

  // At most to 2^64 - 2.
  void Add(uint64_t first, uint64_t last);
  bool Contains(uint64_t first, uint64_t last) const;
  // The end of the range that has `sequence`; nothing where none has it.
  std::optional<uint64_t> EndOf(uint64_t sequence) const;

  std::vector<Range> ranges() const;
  // What they take of memory, about.
  size_t memory_bytes() const;

 private:
  // Of ranges that follow each other: from the first one's begin on, in turn the distances to the
  // end of a range and to the begin of the next one, as varints.
  using Block = std::vector<uint8_t>;
  using Blocks = std::map<uint64_t, Block>;  // by the first one's begin; never empty

  static void Decode(const Blocks::value_type& block, std::vector<Range>& ranges);

  Blocks blocks_;
};

}  // namespace vcpulse::stream

#include "monitor/stream/disk/sequence_ranges.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace vcpulse::stream {
namespace {

// Each chunk that is added or looked for unpacks its block.
constexpr size_t kMostOfABlock = 128;
// What a node of the map takes beside the bytes of its block, with malloc's share of both.
constexpr size_t kNodeBytes = 96;

void PutVarint(uint64_t value, std::vector<uint8_t>& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

uint64_t TakeVarint(std::span<const uint8_t>& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t byte = bytes.front();
    bytes = bytes.subspan(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<uint8_t> Encode(std::span<const SequenceRanges::Range> ranges) {
  std::vector<uint8_t> bytes;
  uint64_t at = ranges.front().first;
  for (const auto& [first, last] : ranges) {
    if (!bytes.empty()) PutVarint(first - at, bytes);
    PutVarint(last - first, bytes);
    at = last;
  }
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace

void SequenceRanges::Decode(const Blocks::value_type& block, std::vector<Range>& ranges) {
  std::span<const uint8_t> bytes = block.second;
  uint64_t first = block.first;
  while (true) {
    const uint64_t last = first + TakeVarint(bytes);
    ranges.emplace_back(first, last);
    if (bytes.empty()) return;
    first = last + TakeVarint(bytes);
  }
}

void SequenceRanges::Add(uint64_t first, uint64_t last) {
  if (first > last) return;
  // The block that begins before it, and all that begin within it or just behind it.
  auto begin = blocks_.upper_bound(first);
  if (begin != blocks_.begin()) --begin;
  const auto end = blocks_.upper_bound(last + 1);
  std::vector<Range> ranges;
  for (auto at = begin; at != end; ++at) Decode(*at, ranges);
  blocks_.erase(begin, end);
  // Those that it touches become one with it.
  const auto touched = std::ranges::lower_bound(
      ranges, first, {}, [](const Range& range) { return range.second + 1; });
  auto behind = touched;
  for (; behind != ranges.end() && behind->first <= last + 1; ++behind) {
    first = std::min(first, behind->first);
    last = std::max(last, behind->second);
  }
  const auto added = ranges.insert(ranges.erase(touched, behind), {first, last});
  // Ranges come in order, mostly: then a block that is full stays so, and another one begins. One
  // into which others come is halved.
  const size_t most = std::next(added) == ranges.end() || ranges.size() <= kMostOfABlock
                          ? kMostOfABlock
                          : kMostOfABlock / 2 + 1;
  std::span<const Range> left = ranges;
  while (!left.empty()) {
    const auto part = left.first(std::min(left.size(), most));
    blocks_.emplace(part.front().first, Encode(part));
    left = left.subspan(part.size());
  }
}

std::optional<uint64_t> SequenceRanges::EndOf(uint64_t sequence) const {
  const auto behind = blocks_.upper_bound(sequence);
  if (behind == blocks_.begin()) return std::nullopt;
  std::vector<Range> ranges;
  Decode(*std::prev(behind), ranges);
  const auto at = std::ranges::lower_bound(ranges, sequence, {},
                                           [](const Range& range) { return range.second; });
  if (at == ranges.end() || at->first > sequence) return std::nullopt;
  return at->second;
}

bool SequenceRanges::Contains(uint64_t first, uint64_t last) const {
  const std::optional<uint64_t> end = EndOf(first);
  return end && *end >= last;
}

std::vector<SequenceRanges::Range> SequenceRanges::ranges() const {
  std::vector<Range> ranges;
  for (const auto& block : blocks_) Decode(block, ranges);
  return ranges;
}

size_t SequenceRanges::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& [first, block] : blocks_) bytes += kNodeBytes + block.capacity();
  return bytes;
}

}  // namespace vcpulse::stream

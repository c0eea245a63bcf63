#pragma once

// What the columns of a chunk have in common: each entry is a value minus what was to be expected.
// timeline.proto is the specification. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "google/protobuf/repeated_field.h"
#include "monitor/core/sample.h"

namespace vcpulse::timeline {

inline uint64_t Bits(int64_t value) { return static_cast<uint64_t>(value); }
inline int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

// The two directions of the codec. Each entry is a value minus what was to be expected, so that
// the layout below is written once and both directions agree on it.
struct Encode {
  using Column = int64_t*;
  static void Code(uint64_t expected, uint64_t& value, int64_t& entry) {
    entry = Signed(value - expected);
  }
};
struct Decode {
  using Column = const int64_t*;
  static void Code(uint64_t expected, uint64_t& value, const int64_t& entry) {
    value = expected + Bits(entry);
  }
};

// What to expect of a count that was `before`, in proportion to one that went from `leader_before`
// to `leader`. IEEE doubles, one division and one multiplication: the same on every machine.
class Proportion {
 public:
  Proportion(uint64_t leader_before, uint64_t leader)
      : ratio_(leader_before == 0
                   ? 1.0
                   : static_cast<double>(leader) / static_cast<double>(leader_before)) {}

  uint64_t Of(uint64_t before) const {
    const double expected = static_cast<double>(before) * ratio_;
    return expected < 0x1p63 ? static_cast<uint64_t>(expected) : before;
  }

 private:
  double ratio_;
};

// Codes the counts of one vCPU's group in one row at entry `i`. `last` are the cumulative counts of
// the row before, `progress` its progress; `now` is read (Encode) or filled (Decode). The first
// event is expected in proportion to the time running, the others to the first.
template <typename Direction>
void CodeCounts(std::span<const typename Direction::Column> columns, size_t i,
                Proportion proportion, const std::array<uint64_t, core::kMaxEvents>& last,
                std::array<uint64_t, core::kMaxEvents>& progress,
                std::array<uint64_t, core::kMaxEvents>& now) {
  for (size_t e = 0; e < columns.size(); ++e) {
    uint64_t count = now[e] - last[e];
    Direction::Code(proportion.Of(progress[e]), count, columns[e][i]);
    if (e == 0) proportion = Proportion(progress[0], count);
    now[e] = last[e] + count;
    progress[e] = count;
  }
}

// Sizes a column for `size` entries of 0 and gives its memory.
template <typename T>
T* Prepare(google::protobuf::RepeatedField<T>* column, size_t size) {
  column->Clear();
  column->Resize(static_cast<int>(size), 0);
  return column->mutable_data();
}

}  // namespace vcpulse::timeline

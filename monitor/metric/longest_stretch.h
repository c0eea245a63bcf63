#pragma once

#include <cstdint>
#include <optional>

namespace vcpulse::metric {

// The longest time in one go over which something held, of intervals given in the order of time. An
// interval over ticks that are missing does not hold.
class LongestStretch {
 public:
  void Add(int64_t from_ns, int64_t to_ns, bool holds) {
    if (!holds) {
      to_ns_ = std::nullopt;
      return;
    }
    if (to_ns_ != from_ns) from_ns_ = from_ns;  // a gap ends a stretch
    to_ns_ = to_ns;
    if (to_ns - from_ns_ <= length_ns_) return;
    length_ns_ = to_ns - from_ns_;
    begin_ns_ = from_ns_;
  }
  int64_t length_ns() const { return length_ns_; }  // 0: it never held
  int64_t begin_ns() const { return begin_ns_; }    // CLOCK_MONOTONIC
  // How long it has held by now, from its true begin on; 0: it does not.
  int64_t running_ns() const { return to_ns_ ? *to_ns_ - from_ns_ : 0; }

 private:
  int64_t from_ns_ = 0;
  std::optional<int64_t> to_ns_;  // of the stretch that may go on
  int64_t length_ns_ = 0;
  int64_t begin_ns_ = 0;
};

}  // namespace vcpulse::metric

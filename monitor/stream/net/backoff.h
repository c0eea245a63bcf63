#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace vcpulse::stream {

// How long to wait before the next attempt to connect: drawn from the upper half of a span that
// doubles with each attempt. One thread.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), span_(first), random_(std::random_device{}()) {}

  std::chrono::milliseconds Next() {
    // Half of it at least, so that many that lost one collector do not come back all at once.
    const std::chrono::milliseconds wait(
        std::uniform_int_distribution<int64_t>(span_.count() / 2, span_.count())(random_));
    span_ = std::min(longest_, span_ * 2);
    return wait;
  }
  // From now on as at first: the last attempt was good for something.
  void Reset() { span_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds span_;
  std::minstd_rand random_;
};

}  // namespace vcpulse::stream

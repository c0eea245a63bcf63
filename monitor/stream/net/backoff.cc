#include "monitor/stream/net/backoff.h"

#include <algorithm>
#include <cstdint>

namespace vcpulse::stream {

Backoff::Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
    : first_(first), longest_(longest), span_(first), random_(std::random_device{}()) {}

std::chrono::milliseconds Backoff::Next() {
  // Half of it at least, so that many that lost one collector do not come back all at once.
  const std::chrono::milliseconds wait(
      std::uniform_int_distribution<int64_t>(span_.count() / 2, span_.count())(random_));
  span_ = std::min(longest_, span_ * 2);
  return wait;
}

}  // namespace vcpulse::stream

#pragma once

#include <chrono>
#include <random>

namespace vcpulse::stream {

// How long to wait before the next attempt to connect: drawn from the upper half of a span that
// doubles with each attempt. One thread.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest);

  std::chrono::milliseconds Next();
  // From now on as at first: the last attempt was good for something.
  void Reset() { span_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds span_;
  std::minstd_rand random_;
};

}  // namespace vcpulse::stream

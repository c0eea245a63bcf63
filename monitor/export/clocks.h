#pragma once

#include <cstdint>
#include <optional>

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// Turns instants of CLOCK_MONOTONIC into those of other clocks, by the latest snapshot.
class Clocks {
 public:
  void Take(const v1::ClockSnapshot& snapshot) {
    if (snapshot.realtime_ns() > 0)
      realtime_ahead_ = Minus(snapshot.realtime_ns(), snapshot.mono_ns());
    if (snapshot.boottime_ns() > 0)
      boottime_ahead_ = Minus(snapshot.boottime_ns(), snapshot.mono_ns());
  }

  // ns since 1970; nothing where no snapshot told.
  std::optional<int64_t> Realtime(int64_t mono_ns) const { return After(realtime_ahead_, mono_ns); }
  // CLOCK_BOOTTIME likewise.
  std::optional<int64_t> Boottime(int64_t mono_ns) const { return After(boottime_ahead_, mono_ns); }

  // BOOTTIME - MONOTONIC.
  std::optional<int64_t> boottime_ahead() const { return boottime_ahead_; }

 private:
  // Both modulo 2^64: a damaged file may say anything.
  static int64_t Minus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
  static std::optional<int64_t> After(std::optional<int64_t> ahead, int64_t mono_ns) {
    if (!ahead) return std::nullopt;
    return static_cast<int64_t>(static_cast<uint64_t>(mono_ns) + static_cast<uint64_t>(*ahead));
  }

  std::optional<int64_t> realtime_ahead_;
  std::optional<int64_t> boottime_ahead_;
};

}  // namespace vcpulse::exporting

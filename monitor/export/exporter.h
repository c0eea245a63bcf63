#pragma once

// monitor/export: a timeline for other programs. README.md tells what lives here.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// Takes text or bytes, many rows at a time.
using Sink = std::function<absl::Status(std::string_view)>;

// One way to write a timeline. Memory grows with the number of epochs alone. One thread.
class Exporter {
 public:
  virtual ~Exporter() = default;

  // Takes the entries of one stream in order. Errors: those of the sink; InvalidArgument where a
  // second stream begins.
  virtual absl::Status Add(const timeline::Entry& entry) = 0;
  // Hands over what was gathered so far. Errors: those of the sink.
  virtual absl::Status Flush() = 0;
  // After the last entry: writes what is still open, hands over the rest.
  virtual absl::Status Finish() = 0;
  // Samples that could not be used, as no vCPU set fits them.
  virtual uint64_t unusable_ticks() const = 0;
};

// Turns instants of CLOCK_MONOTONIC into those of other clocks, by the latest snapshot.
class Clocks {
 public:
  void Take(const v1::ClockSnapshot& snapshot) {
    if (snapshot.realtime_ns() > 0)
      realtime_ahead_ = Minus(snapshot.realtime_ns(), snapshot.mono_ns());
    if (snapshot.boottime_ns() <= 0) return;
    // BOOTTIME runs away from MONOTONIC while the host is suspended and at no other time: a smaller
    // step is of the two readings, and would make time go backwards.
    const int64_t ahead = Minus(snapshot.boottime_ns(), snapshot.mono_ns());
    const int64_t step = boottime_ahead_ ? Minus(ahead, *boottime_ahead_) : 0;
    const bool jitter = -kJitter_ns < step && step < kJitter_ns;
    if (!boottime_ahead_ || !jitter) boottime_ahead_ = ahead;
  }

  // ns since 1970; nothing where no snapshot told.
  std::optional<int64_t> Realtime(int64_t mono_ns) const { return After(realtime_ahead_, mono_ns); }
  // CLOCK_BOOTTIME likewise.
  std::optional<int64_t> Boottime(int64_t mono_ns) const { return After(boottime_ahead_, mono_ns); }

  // BOOTTIME and REALTIME less MONOTONIC.
  std::optional<int64_t> boottime_ahead() const { return boottime_ahead_; }
  std::optional<int64_t> realtime_ahead() const { return realtime_ahead_; }

 private:
  static constexpr int64_t kJitter_ns = 1'000'000;

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

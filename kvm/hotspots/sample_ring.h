#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kvm/base/fd.h"
#include "kvm/counters/perf_events.h"

namespace vcpulse::kvm {

// One perf event of one thread with the ring that the kernel writes its samples to. One thread may
// use it.
class SampleRing {
 public:
  // `attr` is completed (disabled, so that it begins with Enable). Errors: of perf_event_open.
  static OrErrno<SampleRing> Open(PerfEvents& perf, perf_event_attr attr, pid_t tid);
  // Takes memory for samples, once, before anything else. Returns 0 or the errno of mmap.
  int Map();

  SampleRing() = default;
  SampleRing(SampleRing&& other) noexcept { *this = std::move(other); }
  SampleRing& operator=(SampleRing&& other) noexcept;
  ~SampleRing();

  // Returns 0 or errno.
  int SetFilter(std::string_view filter) const;
  int Enable() const;
  int Disable() const;

  // Hands over all whole records since the last call, in order.
  void Take(absl::FunctionRef<void(std::span<const uint8_t>)> records);

 private:
  static constexpr size_t kPages = 32;  // of data: at 24 to 100 bytes each over 1,000 samples

  size_t MappedBytes() const;

  Fd fd_;
  void* pages_ = nullptr;
  std::vector<uint8_t> copy_;
};

}  // namespace vcpulse::kvm

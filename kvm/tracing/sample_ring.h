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

// One perf event of one thread, or one CPU, with the ring that the kernel writes its samples to.
// One thread may use it.
class SampleRing {
 public:
  // `attr` is completed (disabled, so that it begins with Enable). Errors: of perf_event_open.
  static OrErrno<SampleRing> Open(PerfEvents& perf, perf_event_attr attr, pid_t tid);
  // The same of all threads on one CPU.
  static OrErrno<SampleRing> OpenOnCpu(PerfEvents& perf, perf_event_attr attr, int cpu);
  // Takes memory for samples, once, before anything else: `pages` for data, a power of two. Returns
  // 0 or the errno of mmap.
  int Map(size_t pages = 32);  // at 24 to 100 bytes each over 1,000 samples
  // Writes its samples to the ring of `other`, which has memory, instead. Returns 0 or errno.
  int WriteTo(const SampleRing& other) const;

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
  static OrErrno<SampleRing> Of(OrErrno<Fd> fd);
  size_t MappedBytes() const;

  Fd fd_;
  size_t data_pages_ = 0;
  void* pages_ = nullptr;
  std::vector<uint8_t> copy_;
};

}  // namespace vcpulse::kvm

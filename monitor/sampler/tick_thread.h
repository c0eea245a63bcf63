#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "monitor/core/schedule.h"
#include "monitor/sampler/sampler.h"

namespace vcpulse::sampler {

// Whether ticks are slow for long: each read of a vCPU that runs is an interrupt of its CPU, one
// after the other. Judges runs of at least 8 ticks, so that one tick that was preempted is none.
class SlowTickWatch {
 public:
  // With the counts of a TickThread, about each second: true the first time most ticks since the
  // last judgement were slow.
  bool Look(uint64_t ticks, uint64_t slow_ticks);

 private:
  uint64_t ticks_ = 0;
  uint64_t slow_ticks_ = 0;
  bool said_ = false;
};

// Runs a sampler's ticks at absolute deadlines on a thread of its own, named "vcpulse-tick", with
// timer slack 1 ns. One system call per tick beside the reads.
class TickThread {
 public:
  struct Options {
    absl::Duration interval = absl::Milliseconds(100);
    bool realtime = false;  // SCHED_FIFO at the lowest priority; perturbs, so off by default
  };

  // Starts ticking: tick 0 is due at once. `sampler` must outlive the thread. Errors:
  // PermissionDenied where --realtime is not allowed, with what to do.
  static absl::StatusOr<std::unique_ptr<TickThread>> Start(Sampler& sampler,
                                                           const Options& options);

  // Stops and joins.
  ~TickThread();

  TickThread(const TickThread&) = delete;
  TickThread& operator=(const TickThread&) = delete;

  // Control thread: lets the thread take in Add and Retire now, not at the next tick.
  void Wake();

  // Ticks taken so far. Any thread.
  uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }
  // Those of them that took more than a quarter of the interval. Any thread.
  uint64_t slow_ticks() const { return slow_ticks_.load(std::memory_order_relaxed); }

 private:
  TickThread(Sampler& sampler, const Options& options);

  void Run();
  // Sleeps until the instant, taking in commands whenever woken. False where it is time to stop.
  bool WaitUntil(int64_t deadline_ns);

  Sampler& sampler_;
  core::Schedule schedule_;
  sem_t wake_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> ticks_ = 0;
  std::atomic<uint64_t> slow_ticks_ = 0;
  const int64_t slow_ns_;
  std::thread thread_;
};

}  // namespace vcpulse::sampler

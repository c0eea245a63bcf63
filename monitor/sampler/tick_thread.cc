#include "monitor/sampler/tick_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

#include "kvm/base/clock.h"
#include "kvm/base/signals.h"

namespace vcpulse::sampler {

bool SlowTickWatch::Look(uint64_t ticks, uint64_t slow_ticks) {
  constexpr uint64_t kFewest = 8;
  const uint64_t more = ticks - ticks_;
  if (said_ || more < kFewest) return false;
  said_ = 2 * (slow_ticks - slow_ticks_) > more;
  ticks_ = ticks;
  slow_ticks_ = slow_ticks;
  return said_;
}

TickThread::TickThread(Sampler& sampler, const Options& options)
    : sampler_(sampler),
      schedule_(MonotonicNow_ns(), absl::ToInt64Nanoseconds(options.interval)),
      slow_ns_(absl::ToInt64Nanoseconds(options.interval / 4)) {
  sem_init(&wake_, /*pshared=*/0, 0);
}

absl::StatusOr<std::unique_ptr<TickThread>> TickThread::Start(Sampler& sampler,
                                                              const Options& options) {
  std::unique_ptr<TickThread> thread(new TickThread(sampler, options));
  thread->thread_ = std::thread([raw = thread.get()] { raw->Run(); });
  if (options.realtime) {
    sched_param parameters{};
    parameters.sched_priority = sched_get_priority_min(SCHED_FIFO);
    const int error =
        pthread_setschedparam(thread->thread_.native_handle(), SCHED_FIFO, &parameters);
    if (error != 0) {
      return absl::ErrnoToStatus(
          error,
          "--realtime: SCHED_FIFO is not allowed: run as root, or give vcpulse the right "
          "with `setcap cap_sys_nice,cap_perfmon=ep`, or raise `ulimit -r`");
    }
  }
  return thread;
}

TickThread::~TickThread() {
  stop_.store(true, std::memory_order_release);
  Wake();
  if (thread_.joinable()) thread_.join();
  sem_destroy(&wake_);
}

void TickThread::Wake() { sem_post(&wake_); }

void TickThread::Run() {
  pthread_setname_np(pthread_self(), "vcpulse-tick");
  prctl(PR_SET_TIMERSLACK, 1UL);
  const BlockedSignals blocked;  // they are the control thread's
  uint64_t tick = 0;
  while (WaitUntil(schedule_.DeadlineOf(tick))) {
    const int64_t begin_ns = MonotonicNow_ns();
    sampler_.Tick(tick, schedule_.DeadlineOf(tick), begin_ns);
    const int64_t now_ns = MonotonicNow_ns();
    if (now_ns - begin_ns > slow_ns_) slow_ticks_.fetch_add(1, std::memory_order_relaxed);
    ticks_.fetch_add(1, std::memory_order_relaxed);
    const uint64_t next = schedule_.Next(tick, now_ns);
    if (next > tick + 1) sampler_.Missed({tick + 1, next - 1}, now_ns);
    tick = next;
  }
  sampler_.TakeCommands();
}

bool TickThread::WaitUntil(int64_t deadline_ns) {
  const timespec deadline = ToTimespec(deadline_ns);
  while (true) {
    sampler_.TakeCommands();
    if (stop_.load(std::memory_order_acquire)) return false;
    if (sem_clockwait(&wake_, CLOCK_MONOTONIC, &deadline) == 0) continue;  // woken for commands
    if (errno == ETIMEDOUT) return true;
    // EINTR: wait on.
  }
}

}  // namespace vcpulse::sampler

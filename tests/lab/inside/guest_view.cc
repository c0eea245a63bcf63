// guest_view SECONDS, in a guest: for each line that it is sent, what the guest got done in the
// next SECONDS of its own clock, in a line:
//   turns-per-s N timers N late-p50-us N late-p99-us N end
// turns: of a loop that works, on one vCPU with a real-time thread that sets a timer each ms.
// late: how long after its instant a timer has woken that thread.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kPeriod_ns = 1'000'000;

int64_t Now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

uint64_t Work(const std::atomic<bool>& stop) {
  uint64_t turns = 0;
  for (volatile uint64_t x = 1; !stop.load(std::memory_order_relaxed); ++turns) {
    for (int i = 0; i < 1000; ++i) x = x * 3 + 1;
  }
  return turns;
}

// Sorted, us.
std::vector<int64_t> Lateness(int64_t span_ns) {
  sched_param first{.sched_priority = 1};
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
  std::vector<int64_t> late_us;
  const int64_t begin_ns = Now_ns();
  for (int64_t due_ns = begin_ns; due_ns < begin_ns + span_ns;) {
    due_ns += kPeriod_ns;  // also of those that a stall has made late already
    const timespec due{due_ns / 1'000'000'000, due_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
    late_us.push_back((Now_ns() - due_ns) / 1000);
  }
  std::ranges::sort(late_us);
  return late_us;
}

void Measure(int seconds) {
  std::atomic<bool> stop = false;
  uint64_t turns = 0;
  std::vector<int64_t> late_us;
  std::thread timers([&] {
    late_us = Lateness(int64_t{seconds} * 1'000'000'000);
    stop = true;
  });
  turns = Work(stop);
  timers.join();
  const auto quantile = [&](double q) -> long long {
    return late_us[static_cast<size_t>(q * static_cast<double>(late_us.size() - 1))];
  };
  std::printf("turns-per-s %lld timers %zu late-p50-us %lld late-p99-us %lld end\n",
              static_cast<long long>(turns) / seconds, late_us.size(), quantile(0.5),
              quantile(0.99));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: guest_view SECONDS\n"), 2;
  const int seconds = std::max(std::atoi(argv[1]), 1);
  std::puts("ready");
  std::fflush(stdout);
  for (char line[80]; std::fgets(line, sizeof(line), stdin) != nullptr;) Measure(seconds);
}

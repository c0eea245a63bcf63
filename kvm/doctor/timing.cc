#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/doctor/checks.h"

namespace vcpulse::kvm::doctor {
namespace {

constexpr int64_t kLongest_ns = 300'000'000;
constexpr int64_t kLate_ns = 1'000'000;

void SleepUntil(int64_t deadline_ns) {
  const timespec deadline = ToTimespec(deadline_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) != 0) {
  }
}

std::string Text(int64_t ns) { return absl::FormatDuration(absl::Microseconds(ns / 1000)); }

}  // namespace

std::vector<int64_t> MeasureLateness_ns(int count, absl::Duration period) {
  std::vector<int64_t> lateness;
  std::thread([&] {
    prctl(PR_SET_TIMERSLACK, 1UL);
    const int64_t start = MonotonicNow_ns();
    int64_t now = start;
    for (int i = 0; i < count && now - start < kLongest_ns; ++i) {
      // From where the last one ended, so that each is one sleep however late that was.
      const int64_t deadline = now + absl::ToInt64Nanoseconds(period);
      SleepUntil(deadline);
      now = MonotonicNow_ns();
      lateness.push_back(now - deadline);
    }
  }).join();
  return lateness;
}

Finding CheckLateness(std::span<const int64_t> lateness_ns) {
  Finding finding{.id = "wake-ups"};
  if (lateness_ns.empty()) {
    finding.state = Finding::State::kUnknown;
    finding.answered = "not measured";
    return finding;
  }
  std::vector<int64_t> sorted(lateness_ns.begin(), lateness_ns.end());
  std::ranges::sort(sorted);
  // Nearest rank.
  const auto percentile = [&](size_t p) { return sorted[(sorted.size() * p + 99) / 100 - 1]; };
  finding.tried = absl::StrCat(sorted.size(), " sleeps of 1 ms with timer slack 1 ns");
  finding.answered = absl::StrCat("late by p50 ", Text(percentile(50)), ", p99 ",
                                  Text(percentile(99)), ", max ", Text(sorted.back()));
  if (percentile(99) > kLate_ns) {
    finding.state = Finding::State::kNote;
    finding.remedy = "intervals of 10 ms and less want `record --realtime`, or a less busy host";
  }
  return finding;
}

}  // namespace vcpulse::kvm::doctor

#include "monitor/report/uncounted_time.h"

#include <utility>

namespace vcpulse::report {
namespace {

using metric::Statistic;

// From where on halt polling is what the time on a CPU mostly was.
constexpr double kPollsFrom = 0.5;
// On a CPU per exit, at most: a spin that is worth the name lasts longer.
constexpr double kLongestRun_ns = 100'000;
constexpr double kLongestRunToDevice_ns = 200'000;

bool IsShort(double on_cpu_ns, const metric::StatisticsDelta::Progress& exits, double longest_ns) {
  return exits.time_ns > 0 && exits.count > 0 &&
         on_cpu_ns <= longest_ns * static_cast<double>(exits.count);
}

}  // namespace

double UncountedTime::TotalNs() const {
  double total_ns = unexplained_ns_ + UnreadNs();
  for (const Part& part : parts_) total_ns += part.ns;
  return total_ns;
}

void UncountedTime::Settle(const metric::StatisticsDelta& read) {
  const double uncounted_ns = std::exchange(pending_ns_, 0);
  const double on_cpu_ns = std::exchange(on_cpu_ns_, 0);
  const auto& polled = read.Of(Statistic::kHaltPollNs);
  const auto& io_exits = read.Of(Statistic::kIoExits);
  const auto& halts = read.Of(Statistic::kHaltExits);
  if (polled.time_ns == 0 && io_exits.time_ns == 0 && halts.time_ns == 0) {
    unread_ns_ += uncounted_ns;
    return;
  }
  const bool polls =
      polled.time_ns > 0 && static_cast<double>(polled.count) >= kPollsFrom * on_cpu_ns;
  const bool exits = IsShort(on_cpu_ns, io_exits, kLongestRunToDevice_ns);
  const bool wakes = IsShort(on_cpu_ns, halts, kLongestRun_ns);
  double& part = polls   ? parts_[0].ns
                 : exits ? parts_[1].ns
                 : wakes ? parts_[2].ns
                         : unexplained_ns_;
  part += uncounted_ns;
}

void UncountedTime::Add(const metric::Interval& interval) {
  if (interval.statistics != nullptr) Settle(*interval.statistics);
  on_cpu_ns_ += static_cast<double>(interval.delta.time_enabled_ns);
  if (interval.verdict.rule != core::Rule::kNoCounters) return;
  pending_ns_ += static_cast<double>(interval.delta.interval_ns);
}

}  // namespace vcpulse::report

#include "monitor/report/time_by_cause.h"

#include <algorithm>

namespace vcpulse::report {
namespace {

using metric::Statistic;

// From where on halt polling is what the time on a CPU mostly was.
constexpr double kPollsFrom = 0.5;
// On a CPU per exit, at most: a spin that is worth the name lasts longer.
constexpr double kLongestRun_ns = 100'000;
constexpr double kLongestRunToDevice_ns = 200'000;

bool IsShort(double time_ns, double exits, double longest_ns) {
  return exits > 0 && time_ns <= longest_ns * exits;
}

}  // namespace

double TimeByCause::TotalNs() const {
  double total_ns = unexplained_ns_ + UnreadNs();
  for (const Part& part : parts_) total_ns += part.ns;
  return total_ns;
}

void TimeByCause::Settle(const metric::StatisticsDelta& read) {
  const auto& polled = read.Of(Statistic::kHaltPollNs);
  const auto& io_exits = read.Of(Statistic::kIoExits);
  const auto& halts = read.Of(Statistic::kHaltExits);
  const int64_t time_ns = std::max({polled.time_ns, io_exits.time_ns, halts.time_ns});
  if (time_ns == 0) return;  // nothing of KVM's: the next reading tells of this time too
  // Of a reading over more time than there are intervals, the part that is theirs.
  const double share = std::min(1.0, covered_ns_ / static_cast<double>(time_ns));
  const auto count = [share](const metric::StatisticsDelta::Progress& progress) {
    return share * static_cast<double>(progress.count);
  };
  const bool polls = polled.count > 0 && count(polled) >= kPollsFrom * whole_ns_;
  const bool exits = IsShort(whole_ns_, count(io_exits), kLongestRunToDevice_ns);
  const bool wakes = IsShort(whole_ns_, count(halts), kLongestRun_ns);
  double& part = polls   ? parts_[0].ns
                 : exits ? parts_[1].ns
                 : wakes ? parts_[2].ns
                         : unexplained_ns_;
  part += waiting_ns_;
  waiting_ns_ = whole_ns_ = covered_ns_ = 0;
}

void TimeByCause::Add(const metric::Interval& interval) {
  if (interval.statistics != nullptr) Settle(*interval.statistics);
  whole_ns_ += whole_(interval);
  covered_ns_ += static_cast<double>(interval.delta.interval_ns);
  waiting_ns_ += wanted_(interval);
}

double OnCpuNs(const metric::Interval& interval) {
  return static_cast<double>(interval.delta.time_enabled_ns);
}

double UncountedNs(const metric::Interval& interval) {
  return interval.verdict.rule == core::Rule::kNoCounters ? OnCpuNs(interval) : 0;
}

double OutsideNs(const metric::Interval& interval) {
  const auto residency = interval.Residency();
  if (!residency) return 0;
  const double in_guest_ns = *residency * static_cast<double>(interval.delta.interval_ns);
  return std::max(0.0, OnCpuNs(interval) - in_guest_ns);
}

double PollingNs(const metric::Interval& interval) {
  return interval.verdict.rule == core::Rule::kPolling ? OutsideNs(interval) : 0;
}

}  // namespace vcpulse::report

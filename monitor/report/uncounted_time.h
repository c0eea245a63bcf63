#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "monitor/metric/interval.h"

namespace vcpulse::report {

// What KVM's statistics say of the time in which a vCPU was on a CPU and no hardware counter told
// what it did (UNKNOWN, no-counters). A reading speaks of the time since the one before it. Given
// the intervals of one vCPU in the order of time.
class UncountedTime {
 public:
  struct Part {
    std::string_view cause;  // "halt-polling", "device-exits", "wake-ups"
    double ns = 0;
  };

  void Add(const metric::Interval& interval);

  // By what explains it; docs/statistics.md has the limits. Each at most once: the first that
  // holds.
  const std::array<Part, 3>& parts() const { return parts_; }
  double UnexplainedNs() const { return unexplained_ns_; }  // read, and nothing holds
  double UnreadNs() const { return uncounted_ns_; }         // since the last reading
  double TotalNs() const;

 private:
  void Settle(const metric::StatisticsDelta& read);

  std::array<Part, 3> parts_ = {
      {{.cause = "halt-polling"}, {.cause = "device-exits"}, {.cause = "wake-ups"}}};
  double unexplained_ns_ = 0;
  // Since the last reading of KVM's: on a CPU and not counted, on a CPU, and in all.
  double uncounted_ns_ = 0;
  double on_cpu_ns_ = 0;
  double covered_ns_ = 0;
};

}  // namespace vcpulse::report

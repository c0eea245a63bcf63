#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "monitor/metric/interval.h"

namespace vcpulse::report {

// What KVM's statistics say of a part of the time in which a vCPU was on a CPU. A reading speaks of
// the time since the one before it. Given the intervals of one vCPU in the order of time.
class TimeByCause {
 public:
  // How much of an interval is to be explained, ns.
  using Wanted = double (*)(const metric::Interval&);
  explicit TimeByCause(Wanted wanted) : wanted_(wanted) {}

  struct Part {
    std::string_view cause;  // "halt-polling", "device-exits", "wake-ups"
    double ns = 0;
  };

  void Add(const metric::Interval& interval);

  // By what explains it; docs/statistics.md has the limits. Each at most once: the first that
  // holds.
  const std::array<Part, 3>& parts() const { return parts_; }
  double UnexplainedNs() const { return unexplained_ns_; }  // read, and nothing holds
  double UnreadNs() const { return waiting_ns_; }           // since the last reading
  double TotalNs() const;

 private:
  void Settle(const metric::StatisticsDelta& read);

  std::array<Part, 3> parts_ = {
      {{.cause = "halt-polling"}, {.cause = "device-exits"}, {.cause = "wake-ups"}}};
  double unexplained_ns_ = 0;
  Wanted wanted_;
  // Since the last reading of KVM's: to be explained, on a CPU, and in all.
  double waiting_ns_ = 0;
  double on_cpu_ns_ = 0;
  double covered_ns_ = 0;
};

// Where no hardware counter told what it did (UNKNOWN, no-counters).
double UncountedNs(const metric::Interval& interval);
// In which it was halted, and busy for the host all the same (HALTED, polling): beyond what it ran
// in the guest.
double PollingNs(const metric::Interval& interval);

}  // namespace vcpulse::report

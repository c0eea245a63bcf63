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
  // Some of the time of an interval, ns.
  using TimeOf = double (*)(const metric::Interval&);
  // `wanted` is to be explained; it is part of `whole`, the time in which what KVM counted was
  // done.
  TimeByCause(TimeOf wanted, TimeOf whole) : wanted_(wanted), whole_(whole) {}

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
  TimeOf wanted_;
  TimeOf whole_;
  // Since the last reading of KVM's: to be explained, of the whole, and in all.
  double waiting_ns_ = 0;
  double whole_ns_ = 0;
  double covered_ns_ = 0;
};

// On a CPU; thereof where no hardware counter told what it did (UNKNOWN, no-counters).
double OnCpuNs(const metric::Interval& interval);
double UncountedNs(const metric::Interval& interval);
// On a CPU beyond what it ran in the guest; thereof where it was halted, and busy for the host all
// the same (HALTED, polling). 0 where its residency is not known.
double OutsideNs(const metric::Interval& interval);
double PollingNs(const metric::Interval& interval);

}  // namespace vcpulse::report

#include "monitor/report/host_cpus.h"

namespace vcpulse::report {

void HostCpus::Add(int64_t at_ns, uint32_t cpu) {
  const bool has_moved = all_readings_ == 0 || cpu != latest_;
  latest_ = cpu;
  ++all_readings_;
  if (readings_.contains(cpu) || readings_.size() < kMostCpus) ++readings_[cpu];
  if (!has_moved) return;
  if (moves_.size() < kMostMoves) {
    moves_.push_back({.at_ns = at_ns, .cpu = cpu});
  } else {
    ++moves_omitted_;
  }
}

}  // namespace vcpulse::report

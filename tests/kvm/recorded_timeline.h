#pragma once

// What tests want to know of a timeline that a recording wrote, or is writing.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::kvm_tests {

struct Timeline {
  // One VM in one tick.
  struct Tick {
    uint32_t vm = 0;
    uint32_t epoch = 0;
    core::Sample sample;
    std::vector<core::Verdict> verdicts;
  };

  timeline::ReadReport report;
  v1::Session session;
  std::vector<v1::Profile> profiles;
  std::vector<v1::VcpuSet> sets;
  std::vector<v1::LifeCycle> life_cycles;
  std::vector<v1::Marker> markers;
  std::vector<v1::Gap> gaps;
  std::vector<Tick> ticks;
  std::map<uint32_t, uint64_t> samples;                 // by VM
  std::map<uint32_t, std::multiset<core::Band>> bands;  // by VM, of vCPU 0
  int64_t latest_mono_ns = 0;                           // of a tick
  std::string end_reason;

  // The life-cycle records of this kind, in order.
  std::vector<v1::LifeCycle> Of(v1::LifeCycle::Kind kind) const;
};

// What `path` holds so far; empty where it is not there yet.
Timeline ReadSoFar(const std::string& path);

// The same of a finished recording; a failed expectation where it cannot be read.
Timeline ReadBack(const std::string& path);

}  // namespace vcpulse::kvm_tests

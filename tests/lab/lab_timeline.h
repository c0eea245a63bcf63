#pragma once

// A timeline that a lab run brought out, as the lab's tests want it: per VM and vCPU the deltas
// with their verdicts. Everything is read through the project's own reader; an output that cannot
// be read fails the test that asked for it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/core/classify.h"
#include "monitor/core/delta.h"
#include "monitor/core/event_slots.h"
#include "monitor/timeline/reader.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::lab {

// One interval of one vCPU.
struct Interval {
  uint64_t tick = 0;  // that ended it
  core::VcpuDelta delta;
  core::Verdict verdict;
  core::EventSlots slots;  // of delta.counts
};

struct RecordedVm {
  v1::VmInstance instance;
  std::vector<v1::VcpuSet> sets;                        // one per epoch, in order
  std::map<uint32_t, std::vector<Interval>> intervals;  // by vCPU index
  uint64_t first_tick = 0;
  uint64_t last_tick = 0;
  int64_t first_sample_ns = 0;  // CLOCK_MONOTONIC
  int64_t last_sample_ns = 0;

  // Intervals that a recording without a gap has.
  uint64_t IntervalsDue() const { return last_tick - first_tick; }
};

struct RecordedTimeline {
  v1::Session session;
  std::map<uint32_t, RecordedVm> vms;  // by their number in the stream
  std::vector<v1::HotAddresses> hot_addresses;
  std::vector<v1::Competitors> competitors;
  std::vector<v1::Gap> gaps;
  std::vector<v1::LifeCycle> life_cycle;
  std::optional<v1::Summary> summary;
  timeline::ReadReport read;

  // The number of the VM of that name; 0, and a failure of the test, where it is not there once.
  uint32_t NumberOf(const std::string& name) const;
};

// The path of `file` as the run `run` ("bands-0") left it.
std::string OutputPath(const std::string& run, const std::string& file);

// The text of a file, empty (and a failure of the test) where it cannot be read.
std::string ReadText(const std::string& path);

// Reads the whole timeline and checks that nothing of it is missing.
RecordedTimeline Load(const std::string& path);

// Share of the due intervals for which `holds` is true. One that is missing does not hold.
template <typename Predicate>
double ShareOfTicks(const RecordedVm& vm, uint32_t vcpu, Predicate holds) {
  const auto found = vm.intervals.find(vcpu);
  if (found == vm.intervals.end() || vm.IntervalsDue() == 0) return 0;
  uint64_t good = 0;
  for (const Interval& interval : found->second) good += holds(interval) ? 1 : 0;
  return static_cast<double>(good) / static_cast<double>(vm.IntervalsDue());
}

}  // namespace vcpulse::lab

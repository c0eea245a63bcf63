#pragma once

// Intervals of one vCPU whose numbers stand in the test.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/metric/interval.h"

namespace vcpulse::metric {

struct Made {
  int64_t begin_ns = 0;
  int64_t end_ns = 100;
  core::Verdict verdict{};
  std::vector<uint64_t> counts{};  // of the events, in their order
  double running = 1;              // share of the time that its group was on the PMU
  size_t column = 0;
  std::optional<double> residency = 0.5;
  std::optional<uint64_t> run_ns{};
  std::optional<uint64_t> run_delay_ns = 0;
};

// An epoch of two vCPUs, 0 and 1, of VM 1 or another.
class IntervalMaker {
 public:
  explicit IntervalMaker(const std::vector<std::string>& events = {"cycles", "instructions"},
                         uint32_t vm = 1) {
    epoch_.set.set_vm(vm);
    epoch_.set.set_epoch(1);
    epoch_.set.add_vcpus()->set_index(0);
    epoch_.set.add_vcpus()->set_index(1);
    for (const std::string& event : events) epoch_.set.add_events(event);
    epoch_.events = EventPlacesOf(epoch_.set);
    epoch_.slots = core::FindSlots(epoch_.set.events());
  }

  // Calls `use` with the interval.
  template <typename Use>
  auto With(const Made& made, const Use& use) const {
    core::VcpuSample before;
    core::VcpuSample now;
    before.read_begin_ns = before.read_end_ns = made.begin_ns;
    now.read_begin_ns = now.read_end_ns = made.end_ns;
    core::VcpuDelta delta;
    delta.interval_ns = made.end_ns - made.begin_ns;
    delta.time_enabled_ns = static_cast<uint64_t>(delta.interval_ns);
    delta.time_running_ns =
        static_cast<uint64_t>(made.running * static_cast<double>(delta.interval_ns));
    for (size_t i = 0; i < made.counts.size(); ++i) delta.counts.at(i) = made.counts[i];
    delta.run_ns = made.run_ns;
    delta.run_delay_ns = made.run_delay_ns;
    return use(Interval{.epoch = epoch_,
                        .column = made.column,
                        .before = before,
                        .now = now,
                        .groups = {&delta, 1},
                        .delta = delta,
                        .residency = made.residency,
                        .verdict = made.verdict});
  }

 private:
  Epoch epoch_;
};

}  // namespace vcpulse::metric

#pragma once

// Counts of the scheduler and of KVM that are high enough to explain what a vCPU does
// (docs/statistics.md).

#include <array>
#include <string_view>

#include "monitor/metric/metric.h"

namespace vcpulse::report {

struct Cause {
  std::string_view name;  // "wake-up-storm"
  metric::Metric metric = metric::Metric::kEnd;
  double from = 0;         // of the metric's mean, inclusive
  double of_at_least = 0;  // what it is a mean of: seconds, or readings
  std::string_view meaning;
};

// From where each takes about a tenth of the time: a halt and its wake-up some 10 us, an exit to
// the VMM some 20 us, a change of CPU (caches and all) up to a ms. In the order in which they are
// printed.
inline constexpr std::array kCauses = {
    Cause{.name = "wake-up-storm",
          .metric = metric::Metric::kHaltExits,
          .from = 10'000,
          .meaning = "it is woken and halts again all the time"},
    Cause{.name = "device-exits",
          .metric = metric::Metric::kIoExits,
          .from = 5'000,
          .meaning = "its time goes to devices that the VMM or KVM emulates"},
    Cause{.name = "halt-polling",
          .metric = metric::Metric::kHaltPoll,
          .from = 100,
          .meaning = "busy for the host that long, idle in the guest"},
    Cause{.name = "moving",
          .metric = metric::Metric::kMigrations,
          .from = 100,
          .meaning = "its thread changes the CPU all the time"},
    Cause{.name = "numa-remote",
          .metric = metric::Metric::kNumaRemote,
          .from = 10,
          .of_at_least = 20,
          .meaning = "its thread leaves the NUMA node on which it mostly runs"},
    Cause{.name = "smt-shared",
          .metric = metric::Metric::kSmtShared,
          .from = 50,
          .of_at_least = 20,
          .meaning = "another vCPU runs on the other thread of its core (--vcpu N names it)"},
};

}  // namespace vcpulse::report

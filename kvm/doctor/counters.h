#pragma once

// Is there a PMU, does it count, which event sets fit and run? All on the calling thread, on which
// a guest-only event rightly counts nothing.

#include <span>
#include <string>
#include <vector>

#include "kvm/counters/perf_events.h"
#include "kvm/doctor/finding.h"
#include "kvm/events/pmu.h"
#include "kvm/own_rights.h"

namespace vcpulse::kvm::doctor {

// What the checks of one host have in common.
struct CounterContext {
  PerfEvents& perf;
  const OwnRights& own;
  std::span<const Pmu> cores;  // CorePmus
  std::string mediated;        // MediatedVpmuObstacle; no guest-counting event is opened where set
  std::string machine;         // uname -m
};

// "pmu": the PMUs of sysfs, and whether one of them takes cycles; "hybrid" beside it where the
// cores have more than one kind.
std::vector<Finding> CheckPmus(const CounterContext& context);

// "host-cycles": must move while a busy loop runs.
Finding CheckHostCycles(const CounterContext& context);

// "guest-only": cycles with exclude_host, as vcpulse records them. Must open, be taken by the PMU,
// and count 0.
Finding CheckGuestOnly(const CounterContext& context);

// "events-full", "events-core", "events-min", "events-cycles": each opens as one group and runs,
// counting the host and then, unless KVM runs with a mediated vPMU, as vcpulse records it, where
// all of its counts must be 0. One that gave way to others for more than 5 % of its time is a note.
// Only what `full` lacks is an obstacle: the smaller sets say where the recording would step down
// to. ref-cycles is not expected but on x86.
std::vector<Finding> CheckEventSets(const CounterContext& context);

// "nmi-watchdog": takes a counter of each CPU where it runs.
Finding CheckNmiWatchdog(const std::string& root);

}  // namespace vcpulse::kvm::doctor

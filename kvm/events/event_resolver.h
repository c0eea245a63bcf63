#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "kvm/events/event.h"
#include "kvm/events/event_catalog.h"

namespace vcpulse::kvm {

// What `--events` means on the host of `catalog`: perf's syntax (kvm/events/event_syntax.h) with
// perf's generic names, the PMUs' own events (also without their PMU where one core PMU alone has
// them), raw numbers and tracepoints. Events are named as they were written, without modifiers
// (FindGenericEvent has two exceptions). Nothing is opened, and on hybrid hosts no generic event is
// split by PMU.
//
// Software events and tracepoints are host_side: the kernel ignores exclude_host for them.
//
// A raw event that its PMU does not implement opens, runs and counts 0, so it is put into `absent`
// where the PMU says what it implements. Only Arm's PMUv3 does: of the common events 0x00 to 0x3f
// its driver shows in sysfs exactly those in PMCEID0_EL0 and PMCEID1_EL0 (drivers/perf/arm_pmuv3.c,
// armv8pmu_event_attr_is_visible; 0x1e, CHAIN, never, as it counts nothing alone). x86 has no such
// list: CPUID leaf 0xa covers seven architectural events and the kernel asks no more of a raw
// number. Neither has any PMU for numbers from 0x40 up. `groups` can be empty where all is absent.
//
// Errors, one line each: InvalidArgument (syntax, modifiers, terms, a name twice, a PMU
// that counts no thread), NotFound (no such event, PMU or tracepoint, with what may have been
// meant), FailedPrecondition (tracepoints cannot be read). Reads tracepoint ids; any thread.
absl::StatusOr<EventRequest> ResolveEvents(std::string_view text, const EventCatalog& catalog);

}  // namespace vcpulse::kvm

#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "kvm/events/event.h"
#include "kvm/events/event_syntax.h"
#include "kvm/events/pmu.h"

namespace vcpulse::kvm {

// The event that `terms` mean on `pmu`, as perf reads them (man perf-list, "PARAMETERIZED EVENTS";
// tools/perf/util/pmu.c): format terms by sysfs, a bare one means 1; config, config1, config2 for a
// whole word; a named event of the PMU (a generic hardware name stands for the one of its names
// that the PMU has); rHEX for config; name=NAME. A term given beside a named event takes the place
// of what that event says. The event is named only where name= says so. Pure.
// Errors: InvalidArgument, one line without the event's text: unknown terms, values too large for
// their field, terms given twice.
absl::StatusOr<Event> EncodePmuEvent(const Pmu& pmu, std::span<const EventTerm> terms);

}  // namespace vcpulse::kvm

#pragma once

// What the counters of a microguest's vCPUs counted: the very groups that a recording opens.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/event.h"
#include "kvm/microguest/machine.h"

namespace vcpulse::kvm::doctor {

// Of one vCPU between two instants, its thread being off the CPU at both.
struct Counts {
  std::map<std::string, uint64_t> of;  // by event; on hybrid hosts of all core PMUs together
  uint64_t enabled_ns = 0;             // of the thread on a CPU
  uint64_t running_ns = 0;             // of it with counters on a PMU

  // What one group counted: all of it, or on hybrid hosts that of one core PMU.
  void Add(const GroupValues& begun, const GroupValues& now, std::span<const Event> events);

  // Whether nothing else took a counter meanwhile.
  bool Whole() const;

  std::optional<uint64_t> Of(const std::string& event) const {
    const auto found = of.find(event);
    return found != of.end() ? std::optional(found->second) : std::nullopt;
  }

 private:
  size_t groups_ = 0;
};

class GuestCounts {
 public:
  // `root` as in Discovery. Errors: those of OpenGroups; FailedPrecondition where the host has no
  // counters. `perf` must outlive it.
  static absl::StatusOr<GuestCounts> Open(PerfEvents& perf, const std::string& root,
                                          const std::optional<Event>& pause,
                                          const microguest::Machine& machine);

  // The events that are counted, the leader first.
  std::vector<std::string> Events() const;
  bool Counts(const std::string& event) const;

  // A vCPU's counts go from zero from here on. Errors: of read(2).
  absl::Status Begin(size_t vcpu);
  absl::StatusOr<doctor::Counts> Since(size_t vcpu);

 private:
  explicit GuestCounts(OpenedGroups opened) : opened_(std::move(opened)) {}
  absl::StatusOr<std::vector<GroupValues>> Read(size_t vcpu);

  OpenedGroups opened_;
  std::vector<std::vector<GroupValues>> begun_;  // by vCPU and group
};

}  // namespace vcpulse::kvm::doctor

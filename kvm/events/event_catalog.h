#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/events/pmu.h"

namespace vcpulse::kvm {

// The events that a host knows by names of its own: PMUs and tracepoints. The PMUs are read once,
// tracepoints (thousands) when they are asked for. `root` as in Discovery. Any thread.
class EventCatalog {
 public:
  explicit EventCatalog(const std::string& root);

  std::span<const Pmu> pmus() const { return pmus_; }
  std::span<const Pmu> core_pmus() const { return core_pmus_; }

  // The PMU of exactly this name, or null.
  const Pmu* FindPmu(std::string_view name) const;

  // The number of a tracepoint: config of a PERF_TYPE_TRACEPOINT event. Errors: FailedPrecondition
  // where the host shows no tracepoints to this user, NotFound where it has no such one.
  absl::StatusOr<uint64_t> TracepointId(std::string_view system, std::string_view name) const;

  // All tracepoints as "SYSTEM:NAME", by name; none where they may not be read.
  std::vector<std::string> Tracepoints() const;

 private:
  std::vector<Pmu> pmus_;
  std::vector<Pmu> core_pmus_;
  std::string tracepoints_;  // .../tracing/events, empty where there is none
};

}  // namespace vcpulse::kvm

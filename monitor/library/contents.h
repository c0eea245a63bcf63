#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::library {

struct VmContents {
  std::string name;
  uint32_t pid = 0;
  std::vector<uint32_t> vcpus;  // indexes, rising, unopened ones included
};

// What a timeline holds, but for its ticks.
struct Contents {
  std::string host;
  std::string no_counters_reason;  // empty: counters were read
  std::string damage;              // empty: whole
  int64_t duration_ns = 0;
  std::vector<VmContents> vms;      // by number: in the order they came
  std::vector<std::string> phases;  // in the order of their first marker
};

// Reads it. Errors: of timeline::ReadTimeline, InvalidArgument where the file holds two recordings.
absl::StatusOr<Contents> ReadContents(const std::string& path);

}  // namespace vcpulse::library

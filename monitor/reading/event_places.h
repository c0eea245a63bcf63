#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::reading {

// Where the count of an event is in the samples of an epoch.
struct EventPlace {
  std::string name;      // perf's
  bool counted = false;  // else it was asked for and is absent
  size_t group = 0;      // 0 is the main one
  size_t slot = 0;
};

// The events that an epoch asked for, each once: by groups and slots, then those that are absent.
std::vector<EventPlace> EventPlacesOf(const v1::VcpuSet& set);

}  // namespace vcpulse::reading

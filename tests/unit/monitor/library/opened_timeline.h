#pragma once

// A timeline opened through the C API, for its tests.

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "monitor/library/include/vcpulse.h"

namespace vcpulse::library {

struct FreeTimeline {
  void operator()(vcpulse_timeline* timeline) const { vcpulse_timeline_free(timeline); }
};
using Timeline = std::unique_ptr<vcpulse_timeline, FreeTimeline>;

inline Timeline Open(const std::string& path) {
  vcpulse_error* error = nullptr;
  Timeline timeline(vcpulse_timeline_open(path.c_str(), &error));
  EXPECT_NE(timeline, nullptr) << vcpulse_error_message(error);
  vcpulse_error_free(error);
  return timeline;
}

}  // namespace vcpulse::library

#pragma once

// monitor/export: a timeline for other programs. README.md tells what lives here.

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::exporting {

// Takes text or bytes, many rows at a time.
using Sink = std::function<absl::Status(std::string_view)>;

// One way to write a timeline. Memory grows with the number of epochs alone. One thread.
class Exporter {
 public:
  virtual ~Exporter() = default;

  // Takes the entries of one stream in order. Errors: those of the sink; InvalidArgument where a
  // second stream begins.
  virtual absl::Status Add(const timeline::Entry& entry) = 0;
  // Hands over what was gathered so far. Errors: those of the sink.
  virtual absl::Status Flush() = 0;
  // After the last entry: writes what is still open, hands over the rest.
  virtual absl::Status Finish() = 0;
  // Samples that could not be used, as no vCPU set fits them.
  virtual uint64_t unusable_ticks() const = 0;
};

}  // namespace vcpulse::exporting

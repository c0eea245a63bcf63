#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::stream {

// How a timeline came to a collector.
struct Replayed {
  absl::Status ended;  // Cancelled: by a signal; else what was wrong with the file or the collector
  uint64_t chunks = 0;
  uint64_t bytes = 0;  // of them
  Uplink::Stats uplink;
  timeline::ReadReport report;
};

// Streams the timeline in `source`, called `name`, to a collector: its chunks as they are, each
// when its last record is due, `speed` times as fast as it was recorded; nothing: as fast as the
// collector takes them. What is missing in the file is told as lost. Ends where all is
// acknowledged, where the collector takes nothing for 30 s, or by a signal (kvm/base/signals.h; it
// takes them from here on). Errors: where it cannot begin: of Uplink::Start, no collector within
// 10 s, Cancelled by a signal before.
absl::StatusOr<Replayed> ReplayToCollector(timeline::ByteSource& source, const std::string& name,
                                           const std::optional<double>& speed,
                                           Uplink::Options options);

}  // namespace vcpulse::stream

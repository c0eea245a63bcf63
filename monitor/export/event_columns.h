#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "monitor/timeline/input.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// The columns of the events in a table: one per event that any of the sets asked for, and one
// for the share of the time in which it was counted, where that event takes turns on the PMU.
class EventColumns {
 public:
  struct Column {
    std::string event;   // perf's name
    std::string header;  // name of the column, each once
    bool is_share = false;
  };

  // Takes note of the events that a set asked for.
  void Add(const v1::VcpuSet& set);
  // Whether each event of a set has its columns.
  bool Covers(const v1::VcpuSet& set) const;

  // Those that `vcpulse import csv` knows come first and have its names ("branch_misses"), the
  // others theirs, in the order in which they came; a name that is another column's already, of the
  // events or one of `others_taken`, has "event:" in front of it.
  std::vector<Column> Columns(std::span<const std::string_view> others_taken) const;

 private:
  std::vector<std::string> events_;
  std::map<std::string, bool> in_turns_;  // by event
};

// Hands each vCPU set that a tick of the file needs to `sink`, as often as chunks repeat it. Reads
// all chunks, but decodes none of their ticks; damaged ones are skipped. Errors: those of
// opening and reading a file.
absl::Status FindSets(const timeline::Input& input,
                      absl::FunctionRef<void(const v1::VcpuSet&)> sink);

}  // namespace vcpulse::exporting

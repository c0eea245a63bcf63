#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::exporting {

// The columns of the events in a CSV file: one per event that any of the sets asked for, and one
// for the share of the time in which it was counted, where that event takes turns on the PMU.
class CsvColumns {
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
  // others theirs, in the order in which they came; a name that is another column's already has
  // "event:" in front of it.
  std::vector<Column> Columns() const;

 private:
  std::vector<std::string> events_;
  std::map<std::string, bool> in_turns_;  // by event
};

// A cell of a CSV file: in quotes where RFC 4180 wants that.
std::string CsvCell(std::string_view text);

}  // namespace vcpulse::exporting

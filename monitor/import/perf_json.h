#pragma once

// What `perf stat -I N -j` writes: one JSON object per interval, thread (or CPU) and event.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {

// Whose counts a line holds.
struct PerfTarget {
  enum class Kind : uint8_t { kTotal, kThread, kCpu };
  Kind kind = Kind::kTotal;
  std::string comm;     // of a thread
  uint64_t number = 0;  // its TID, or the CPU's number
  std::string cgroup;   // empty without --for-each-cgroup

  auto operator<=>(const PerfTarget&) const = default;
};

// One count.
struct PerfCount {
  enum class Status : uint8_t { kCounted, kNotCounted, kNotSupported };
  uint32_t event = 0;  // in PerfStat::events
  Status status = Status::kCounted;
  // The times below were given.
  bool timed = false;
  // perf writes the share in whole percents (100 * running / enabled in integers) but for releases
  // that write two decimals.
  double percent = 100;
  uint64_t running_ns = 0;
  // As perf extrapolated it to all of the time enabled, which it does by default.
  uint64_t value = 0;
  uint64_t line = 0;
};

// What one thread or CPU did in one interval.
struct PerfRow {
  uint64_t t_ns = 0;    // end of the interval, since perf began to count
  uint64_t dt_ns = 0;   // since the interval before
  uint32_t target = 0;  // in PerfStat::targets
  size_t first = 0;     // in PerfStat::counts; as many as till the next row's
  size_t size = 0;
};

struct PerfStat {
  std::string name;                 // of the file
  std::vector<std::string> events;  // as perf writes them
  std::vector<PerfTarget> targets;
  std::vector<PerfRow> rows;
  std::vector<PerfCount> counts;
  std::vector<Skipped> skipped;
};

// Reads the lines. What is none of perf's counts is passed over and told by kind in `skipped`.
// Errors: InvalidArgument where no line holds a count of an interval; ResourceExhausted beyond the
// limits of a table.
absl::StatusOr<PerfStat> ReadPerfJson(std::string_view text, const std::string& name);

// The same as a table: threads named as vCPUs are ("CPU 0/KVM-1234") are the vCPUs of their VMs,
// told apart as their numbers repeat; where no thread is named so, each thread is a vCPU; CPUs of
// `-A` are vCPUs of the VM "host-cpus"; a total is vCPU 0. Counts are perf's.
absl::StatusOr<Table> ParsePerfJson(std::string_view text, const std::string& name);

// An event as perf stat names it, in vcpulse's words.
struct PerfEvent {
  // "cycles" of cycles:G, since guests are all that vcpulse counts. An event that counts the host
  // too, or one privilege level alone, keeps its modifiers, so that no verdict takes it for the
  // guest's: "instructions:u", and "cycles:H" of cycles without a modifier.
  std::string name;
  bool counts_host = false;
  bool by_nature = false;  // a software event or tracepoint: these count the host in any case
};

// Of the text behind "event" in perf's JSON. perf counts the host alone where no modifier speaks of
// host or guest, since 6.13 the guests too. An event with a name of its own ("name=" in its terms)
// shows no modifier: it is kept as it is.
PerfEvent ReadPerfEvent(std::string_view written);

}  // namespace vcpulse::importing

#pragma once

// monitor/rollup: a timeline as rows of sums, one per vCPU and window of the wall clock. `Windows`
// makes the rows, this file says what is in one, `RowText` and `RowParquet` write
// them. Everything is derived from
// the records alone, so the same timeline gives the same rows. No clock here, no files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "monitor/import/column_names.h"
#include "monitor/metric/interval.h"
#include "monitor/metric/metric.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::rollup {

// Whom rows are of: one vCPU in one epoch of its VM.
struct Subject {
  std::optional<std::string> agent;  // as it called itself to a collector
  std::string host;
  std::string stream;  // 32 hexadecimal digits
  std::optional<std::string> boot_id;
  std::optional<std::string> kernel_release;  // of the host
  std::optional<std::string> tool_version;
  std::optional<std::string> labels;  // "rack=12,zone=a", sorted by key
  std::string classifier;
  std::optional<std::string> profile;
  uint32_t vm = 0;  // number of the VM in its stream
  std::optional<std::string> vm_name;
  std::optional<std::string> vm_uuid;
  std::optional<int64_t> vm_pid;
  std::optional<int64_t> vm_start_ticks;
  uint32_t epoch = 0;
  uint32_t vcpu = 0;
  bool has_counters = false;  // hardware events are read: it is not degraded

  // Where the sum of an event goes.
  struct EventSum {
    metric::EventPlace event;
    std::optional<size_t> column{};  // of Row::counts; else it is one of Row::others
    size_t other = 0;
  };
  std::vector<EventSum> events{};
  size_t others = 0;

  // `epoch` is that of the set with the vCPU in place `column`.
  static Subject Of(const v1::Session& session, const metric::Epoch& epoch, size_t column);
};

// The sums of one vCPU over the intervals that end in one window.
struct Row {
  // An event that has no column of its own, or takes turns on the PMU: with its group's times.
  struct Other {
    std::optional<uint64_t> count;  // nothing: it was never on the PMU
    uint64_t time_enabled_ns = 0;
    uint64_t time_running_ns = 0;
  };

  std::shared_ptr<const Subject> subject;
  int64_t window_start_ns = 0;  // since 1970
  int64_t window_ns = 0;
  int64_t ticks = 0;
  metric::Totals totals;
  int64_t unknown_starved_ns = 0;  // of UNKNOWN, by its rule
  int64_t unknown_paused_ns = 0;
  int64_t gap_ns = 0;
  int64_t longest_spin_ns = 0;  // of a run until an interval's end, from its true begin on
  int64_t longest_starvation_ns = 0;
  std::optional<uint64_t> run_delay_max_ns;
  std::array<std::optional<uint64_t>, importing::kEventColumns.size()> counts{};
  std::vector<Other> others;

  // Adds one interval of its vCPU, ending in its window.
  void Add(const metric::Interval& interval);
};

using Value = std::variant<std::monostate, int64_t, std::string>;  // monostate: null

enum class Type : uint8_t { kInteger, kText };

struct Column {
  std::string_view name;
  Type type = Type::kInteger;
  bool optional = false;    // it can be null
  bool adds_up = false;     // the sum over rows is that of all of their intervals
  bool is_maximum = false;  // likewise their maximum
  Value (*of)(const Row&) = nullptr;
  std::string_view help;  // one line
};

// Every column, in order: whoever writes rows takes them from here.
std::span<const Column> Columns();

}  // namespace vcpulse::rollup

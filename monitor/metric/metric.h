#pragma once

// The one table of per-vCPU metrics. Reports, exports, the page, checks, comparisons, Prometheus
// and the library take their columns from here, and docs/metrics.md lists them. A new one is an
// enumerator, a row of the table, and a row there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "monitor/metric/interval.h"

namespace vcpulse::metric {

// Append-only: new ones come at the end.
enum class Metric : uint8_t {
  kHalted,
  kSpinning,
  kProductive,
  kUnknown,
  kStarved,
  kConfidence,
  kHeld,
  kRun,
  kRunDelay,
  kResidency,
  kIpc,
  kRunning,
  kCacheMissRate,
  kGhz,
  kBranchMissRate,
  kMigrations,
  kPreemptions,
  kExits,
  kHaltExits,
  kIoExits,
  kSignalExits,
  kHypercalls,
  kWfeExits,
  kHaltPoll,
  kNumaRemote,
  kSmtShared,
  kEnd,  // no metric: how many there are
};
inline constexpr size_t kMetrics = static_cast<size_t>(Metric::kEnd);

// What an interval, or a sum of them, tells of a metric: part / whole.
struct Ratio {
  double part = 0;
  double whole = 0;

  // Nothing where nothing was measured, or a damaged file makes it no number.
  std::optional<double> Value() const;
  void Add(const Ratio& other, double weight) {
    part += other.part * weight;
    whole += other.whole * weight;
  }
};

// A sum that only grows, as Prometheus wants it. No name: there is none.
struct Counter {
  std::string_view name{};
  std::string_view help{};
  // What an interval adds to it; nothing: not counted.
  std::optional<double> (*of)(const Interval&) = nullptr;
  double unit = 1;  // the sum is divided by it when it is shown: 1e9 where it is of ns
};

enum class Unit : uint8_t {
  kShare,   // 0..1, of time
  kNumber,  // Info::unit_text
};

struct Info {
  Metric metric = Metric::kEnd;
  std::string_view key;  // in expressions, in rows of CSV and JSON lines, on the page
  // In the JSON report's object of a vCPU; empty: in an object of its own there.
  std::string_view report_key;
  std::string_view label;  // of its column, for people
  Unit unit = Unit::kShare;
  std::string_view unit_text;  // of a number: "instructions per cycle"
  std::string_view help;       // one line
  Ratio (*of)(const Interval&) = nullptr;
  bool by_time = false;         // part and whole are weighed by the interval's length in sums
  bool needs_counters = false;  // hardware counters
  // Of Interval::statistics: a number that intervals have about once a second, whatever the band.
  bool of_readings = false;
  bool asked = false;    // by check, compare and the library
  int row_decimals = 0;  // in rows of CSV and JSON lines; 0: it is no column there
  int decimals = 2;      // of a number, for people
  std::array<Counter, 2> counters{};

  bool IsShare() const { return unit == Unit::kShare; }
  // Of a number, unless it is of readings, sums take only intervals that were judged other than
  // HALTED: a halted vCPU still runs timer ticks, whose ratios are noise.
  bool OfBusyTime() const { return !IsShare() && !of_readings; }
};

// In the order of the enumerators.
std::span<const Info, kMetrics> Table();
const Info& InfoOf(Metric metric);
// Nothing for a key of none.
std::optional<Metric> FindMetric(std::string_view key);

// Of this interval alone.
std::optional<double> ValueOf(Metric metric, const Interval& interval);
// Of what was read between two readings; nothing of other metrics than Info::of_readings.
std::optional<double> ValueOf(Metric metric, const StatisticsDelta& read);

// Whether the vCPU was busy in it: judged, and not HALTED.
inline bool IsBusy(const Interval& interval) {
  return interval.IsJudged() && interval.verdict.band != core::Band::kHalted;
}

// Of intervals, added up: over time, over the vCPUs of a VM, over VMs. What is of time is whole ns,
// and so are counts: their sums are exact up to 2^53 (104 days), in whatever order they are added.
class Totals {
 public:
  void Add(const Interval& interval);
  // So much of it: 0..1.
  void Add(const Totals& other, double share = 1);

  const Ratio& Of(Metric metric) const { return ratios_[static_cast<size_t>(metric)]; }
  std::optional<double> Value(Metric metric) const { return Of(metric).Value(); }

  // ns, as all times here.
  double MeasuredNs() const { return measured_ns_; }
  double JudgedNs() const { return Of(Metric::kHalted).whole; }
  // Measured, and without a verdict.
  double UnjudgedNs() const { return measured_ns_ - JudgedNs(); }
  // UNKNOWN as no hardware counter was read.
  double NoCountersNs() const { return no_counters_ns_; }
  // Whether that is all of the judged time that was not HALTED.
  bool HadNoCounters() const {
    return no_counters_ns_ > 0 && Of(Metric::kHalted).part + no_counters_ns_ >= JudgedNs();
  }

 private:
  double measured_ns_ = 0;
  double no_counters_ns_ = 0;
  std::array<Ratio, kMetrics> ratios_{};
};

}  // namespace vcpulse::metric

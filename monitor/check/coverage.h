#pragma once

// Which part of the time to be judged each sample tells of, and which part none does. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "monitor/check/outcome.h"
#include "monitor/check/timetable.h"
#include "monitor/core/verdict.h"
#include "monitor/metric/metric.h"

namespace vcpulse::check {

// What is known of a vCPU in one interval; of a VM only that it was sampled.
struct Observation {
  core::Verdict verdict;
  std::optional<double> waiting;  // share of the interval it waited for a CPU
  // Of the metrics that can be asked for, by metric::Metric; nothing where it was not measured.
  std::array<std::optional<double>, metric::kMetrics> values{};
  std::optional<Bounds> residency{};  // nothing where it was not measured
  // Of metrics of readings among `values`: what time each is of, whatever the interval. Its end
  // lies in the interval.
  std::array<TimeRange, metric::kMetrics> read_over{};
  bool by_ipc_alone = false;  // the verdict is by ipc-bands: a hint
  bool degraded = false;      // no hardware counter was read
  // Of a VM: it had ended, so that no sample was due, nor is any known; or it was sampled without
  // a vCPU that could not be opened.
  bool in_part = false;

  std::optional<double> Value(metric::Metric metric) const {
    return values[static_cast<size_t>(metric)];
  }
};

// One piece of the judged time, or part of one.
struct Part {
  TimeRange when;
  const Observation* observation = nullptr;  // nothing: no sample covers it
  bool begins = false;                       // after time that is not judged, so nothing runs on
};

// Lays intervals over the pieces of time to be judged: what it gives back, in order and together,
// is exactly those pieces.
class Coverage {
 public:
  // In order and without overlap; time runs on over pieces that touch.
  explicit Coverage(std::vector<TimeRange> pieces) : pieces_(std::move(pieces)) {}

  // The next interval that a sample covers: what of the pieces lies before it and was not given
  // yet, without an observation, then what lies in it. Whatever was given before is not given
  // again. Valid until the next call, the observation as long as that of the caller.
  std::span<const Part> Take(const TimeRange& covered, const Observation& observation);
  // The rest of the pieces, without an observation.
  std::span<const Part> Finish();

  const std::vector<TimeRange>& pieces() const { return pieces_; }

 private:
  void PassTo(int64_t until_ns, const Observation* observation);

  std::vector<TimeRange> pieces_;
  size_t next_ = 0;                   // the first piece that was not given whole
  std::optional<int64_t> passed_ns_;  // all before it was given
  std::vector<Part> parts_;
};

}  // namespace vcpulse::check

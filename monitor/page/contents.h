#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/metric/interval.h"
#include "monitor/page/bins.h"
#include "monitor/reading/part.h"
#include "monitor/report/report.h"
#include "monitor/report/summary.h"

namespace vcpulse::page {

// Bins and gaps of the entries of one stream. One thread.
class Collector {
 public:
  // Nothing: as small as the ticks tell, a quarter of the interval of the recording, so that the
  // edges of single ticks can be seen.
  struct Options {
    std::optional<int64_t> origin_ns{};  // nothing: the first instant
    std::optional<int64_t> width_ns{};
    size_t most_bytes = size_t{20} << 20;
    std::optional<int64_t> from_ns{};
    std::optional<int64_t> to_ns{};
  };
  explicit Collector(const Options& options) : options_(options) {}

  // Takes note of sessions, gaps and instants; before the intervals that end with the entry.
  void Take(const timeline::Entry& entry);
  void Add(const metric::Interval& interval);

  // Nothing where no vCPU was ever measured.
  const std::optional<Binner>& bins() const { return bins_; }
  const GapSpans& gaps() const { return gaps_; }

 private:
  int64_t SmallestWidth() const;

  Options options_;
  int64_t interval_ns_ = 0;  // of the recording; 0: not known
  std::optional<int64_t> first_ns_;
  std::optional<Binner> bins_;
  GapSpans gaps_;
};

// All that the page shows of a timeline, read in one pass.
class Contents {
 public:
  // Packed bins that a page carries: with all else it stays below 32 MiB, whatever they are.
  static constexpr size_t kEmbeddedBytes = size_t{20} << 20;

  // Errors: those of report::ReadPart.
  static absl::StatusOr<std::unique_ptr<Contents>> Read(const timeline::Input& input,
                                                        const reading::Part& part,
                                                        size_t most_bytes = kEmbeddedBytes);

  // Names hot addresses by them.
  void NameBy(hotspots::GuestKernels symbols) { report_->symbols = std::move(symbols); }

  const report::Report& report() const { return *report_; }
  const Collector& collected() const { return collector_; }

 private:
  explicit Contents(size_t most_bytes) : collector_({.most_bytes = most_bytes}) {}

  report::Summary summary_;
  Collector collector_;
  std::optional<report::Report> report_;  // of summary_
};

}  // namespace vcpulse::page

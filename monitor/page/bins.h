#pragma once

// What each vCPU did, in bins of time, and where samples are missing: the data of the page's heat
// map and charts.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/metric/interval.h"
#include "monitor/metric/metric.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::page {

struct GapSpan {
  uint32_t vm = 0;  // 0: every VM
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // CLOCK_MONOTONIC; from_ns where the length is not known
  v1::Gap::Reason reason = v1::Gap::REASON_UNSPECIFIED;
  std::optional<uint32_t> vcpu{};
  int32_t error = 0;  // errno, 0 where none
  uint64_t ticks = 1;
  uint64_t last_tick = 0;
};

// Turns the numbers of missing ticks into times: tick n would have told of the interval that ends
// when it was due, and the ticks that were taken say when that is. Gaps of the same kind that
// follow each other are one span. One thread.
class GapSpans {
 public:
  // Spans kept; those that come later are counted only.
  static constexpr size_t kMost = 5000;

  // Entries in the order of the timeline; everything but sessions, ticks and gaps is skipped.
  void Add(const timeline::Entry& entry);

  const std::vector<GapSpan>& spans() const { return spans_; }
  uint64_t omitted() const { return omitted_; }

 private:
  GapSpan SpanOf(const v1::Gap& gap) const;

  struct Anchor {
    uint64_t tick = 0;
    int64_t deadline_ns = 0;
  };
  std::optional<Anchor> anchor_;
  int64_t interval_ns_ = 0;
  std::vector<GapSpan> spans_;
  std::map<uint32_t, size_t> latest_;  // of a VM, in spans_
  uint64_t omitted_ = 0;
};

// One event of one vCPU, an entry per bin.
struct EventBins {
  std::string name;
  bool estimated = false;  // its group shared the PMU somewhere: counts are scaled up
  struct Count {
    double count = 0;
    double known_ns = 0;  // the time in which it was counted
  };
  std::vector<Count> counts;
};

struct VcpuBins {
  int64_t first = 0;  // number of the first bin
  // Of an interval that reaches over several bins each has its share by time. A bin in which
  // nothing was measured has no measured time at all: it is missing, not zero.
  std::vector<metric::Totals> bins;
  std::vector<metric::Metric> numbers;  // those that are no shares and were ever measured
  std::vector<EventBins> events;
};

// Folds intervals into bins whose packed form (packing.h) stays within a number of bytes: where the
// next interval would go beyond it, all bins become twice as wide. So the length of the timeline
// need not be known, and memory is bounded, but for a bin per vCPU. Bin n is from
// origin + n x width to the next; n may be negative. One thread.
class Binner {
 public:
  struct Options {
    int64_t origin_ns = 0;  // CLOCK_MONOTONIC
    int64_t width_ns = 1;   // the smallest
    size_t most_bytes = size_t{20} << 20;
    // What lies outside is left out, CLOCK_MONOTONIC.
    std::optional<int64_t> from_ns{};
    std::optional<int64_t> to_ns{};
  };

  explicit Binner(const Options& options);

  void Add(const metric::Interval& interval);

  // By (vm, index of the vCPU).
  using Rows = std::map<std::pair<uint32_t, uint32_t>, VcpuBins>;
  const Rows& rows() const { return rows_; }
  int64_t origin_ns() const { return options_.origin_ns; }
  int64_t width_ns() const { return width_ns_; }
  int64_t smallest_width_ns() const { return options_.width_ns; }
  // Intervals whose instants cannot be: over 100 years from the origin.
  uint64_t unusable() const { return unusable_; }

 private:
  // Where the columns of an epoch's ticks go.
  struct Column {
    VcpuBins* row = nullptr;
    struct Event {
      metric::EventPlace place;
      size_t bins = 0;  // which of row->events
    };
    std::vector<Event> events;  // those that are counted
  };

  Column& ColumnOf(const metric::Interval& interval);
  // Takes note of the numbers that `whole` has.
  void Meet(VcpuBins& row, const metric::Totals& whole);
  // Makes room in `row` for the bins of that time, ns after the origin.
  void Reach(VcpuBins& row, int64_t from_ns, int64_t to_ns);
  void Fold();
  int64_t BinAt(int64_t after_origin_ns) const;

  Options options_;
  int64_t width_ns_;
  Rows rows_;
  // By (vm, epoch): the reader may forget an epoch, whose memory is then another one's.
  using EpochKey = std::pair<uint32_t, uint32_t>;
  std::map<EpochKey, std::vector<Column>> columns_;
  std::pair<EpochKey, std::vector<Column>*> latest_{};
  size_t bytes_ = 0;  // packed
  uint64_t unusable_ = 0;
};

// Packed bytes of one bin of a vCPU with so many numbers and events (packing.h).
constexpr size_t PackedBytesPerBin(size_t numbers, size_t events) {
  constexpr size_t kShares = 9;
  return kShares * 2 + numbers * (4 + 4) + events * (4 + 2);
}

}  // namespace vcpulse::page

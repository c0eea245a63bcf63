#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/metric/interval.h"
#include "monitor/metric/longest_stretch.h"
#include "monitor/rollup/row.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::rollup {

// Lays the intervals of one recording into windows of several lengths at once. A window begins at a
// multiple of its length since 1970; an interval belongs as a whole to the window in which its end
// lies, so rows of short windows add up to those of long ones and to the recording. The wall clock
// is that of the chunk's own snapshot, whatever was read before. Memory: the windows that are open,
// and the epochs. One thread.
class Windows {
 public:
  // Takes a row of a window that is over, `level` being the place of its length. Rows of one length
  // come in the order of time, VM, vCPU and epoch.
  using Sink = std::function<absl::Status(size_t level, const Row& row)>;

  // `lengths_ns` are more than 0 and at most a day.
  Windows(const std::vector<int64_t>& lengths_ns, Sink sink);

  // Takes the entries of one stream in order. Errors: those of the sink; InvalidArgument where a
  // second stream begins.
  absl::Status Add(const timeline::Entry& entry);
  // Gives the windows that are still open. Errors: those of the sink.
  absl::Status Finish();

  // Every window that ends then or before was given, ns since 1970; nothing before the first one.
  std::optional<int64_t> over_until_ns() const {
    if (!latest_ns_) return std::nullopt;
    return *latest_ns_ - kPatience_ns;
  }
  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return intervals_.unusable_ticks(); }
  // Intervals in no window, as the recording does not know the wall clock.
  uint64_t undated_intervals() const { return undated_intervals_; }

 private:
  // After so much more time on the wall clock a window is over: ticks come late, and the clock is
  // adjusted. Where it goes back further, all windows are over, and a window may come twice.
  static constexpr int64_t kPatience_ns = 10'000'000'000;

  // What goes on from window to window and from epoch to epoch.
  struct Vcpu {
    metric::LongestStretch spin;
    metric::LongestStretch starved;
    std::optional<int64_t> sampled_until_ns;  // CLOCK_MONOTONIC
  };
  // A vCPU in an epoch, and its rows in the latest windows.
  struct Column {
    std::shared_ptr<const Subject> subject;
    Vcpu* vcpu = nullptr;
    std::vector<Row*> rows;  // by level; null: none yet, or its window is over
  };
  using RowKey = std::tuple<uint32_t, uint32_t, uint32_t>;  // VM, vCPU, epoch
  struct Level {
    int64_t length_ns = 0;
    std::map<int64_t, std::map<RowKey, Row>> open;  // by begin
  };

  absl::Status AddInterval(const metric::Interval& interval);
  absl::Status PassTo(int64_t realtime_ns);
  absl::Status CloseUntil(int64_t realtime_ns);
  std::vector<Column>& ColumnsOf(const metric::Epoch& epoch);
  Row& RowOf(Column& column, size_t level, int64_t realtime_ns);
  void ForgetEpochs(uint32_t vm);

  const Sink sink_;
  std::vector<Level> levels_;
  exporting::Clocks clocks_;
  metric::IntervalReader intervals_;
  std::map<std::pair<uint32_t, uint32_t>, Vcpu> vcpus_;                   // by VM and index
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Column>> columns_;  // by VM and epoch
  std::optional<int64_t> latest_ns_;                                      // of the wall clock
  int64_t first_end_ns_ = 0;  // no open window ends before
  uint64_t undated_intervals_ = 0;
};

}  // namespace vcpulse::rollup

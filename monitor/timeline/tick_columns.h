#pragma once

// The columns of a chunk (VmTicks in timeline.proto) from rows and back. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "monitor/timeline/group_columns.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// vCPUs of one set at most: four times what KVM allows (KVM_MAX_VCPUS, at most 4,096), twice as
// many as Linux has CPUs (NR_CPUS, at most 8,192: `perf stat -A` is imported as a vCPU for each).
// What is read is not believed beyond it, since each takes memory.
inline constexpr size_t kMaxVcpus = size_t{1} << 14;

// Consecutive samples of one (vm, epoch), as they are buffered until a chunk is cut.
struct TickRows {
  struct Head {
    uint64_t sequence = 0;
    uint64_t tick = 0;
    int64_t deadline_ns = 0;
    int64_t wake_ns = 0;
  };
  size_t vcpus = 0;
  size_t events = 0;                     // <= core::kMaxEvents; counts beyond are not kept
  std::vector<size_t> further_events{};  // of each further group
  bool has_base = false;                 // row 0 is the last sample of the chunk before
  std::vector<Head> heads{};
  std::vector<core::VcpuSample> samples{};   // entry t*vcpus+v
  std::vector<core::GroupSample> further{};  // entry (t*vcpus+v)*further_events.size()+g
  std::vector<core::Verdict> verdicts{};     // likewise

  void Append(uint64_t sequence, const core::Sample& sample,
              std::span<const core::Verdict> row_verdicts);
  // Rows that are records of their own: all but the base.
  size_t ticks() const { return heads.size() - (has_base ? 1 : 0); }
  // Keeps the last row alone, as the base of the next chunk. Memory is kept for reuse.
  void StartNextChunk();
};

// Fills the columns of `out` (not its vm and epoch), at least one row. Scheduler times of a sample
// without them are not kept: they come back as 0.
void EncodeColumns(const TickRows& rows, v1::VmTicks* out);

// Gives the rows of columns back, in order.
class ColumnReader {
 public:
  // `columns` must outlive the reader. DataLoss where the columns do not fit together or do not fit
  // the set's numbers of vCPUs and events (of the main group, of each further one); afterwards
  // nothing can fail.
  static absl::StatusOr<ColumnReader> Open(const v1::VmTicks& columns, size_t vcpus, size_t events,
                                           std::span<const size_t> further_events = {});

  // Bytes that a reader of such columns takes at most, with the rows that it gives.
  static size_t MemoryBytes(const v1::VmTicks& columns);

  size_t rows() const { return rows_; }
  // The sequence numbers of all rows.
  const std::vector<uint64_t>& sequences() const { return sequences_; }

  // The next row into `sample` and `verdicts`, whose memory is taken for a later one. At most
  // rows() times.
  void Next(core::Sample* sample, std::vector<core::Verdict>* verdicts);

  // What decoding a vCPU's next row needs from those before it.
  struct VcpuState {
    core::VcpuSample last;  // cumulative; scheduler times: the last that were there
    // The row before, as timeline.proto defines it.
    uint64_t interval_ns = 0;
    uint64_t off_cpu_ns = 0;
    uint64_t read_ns = 0;
    uint64_t time_enabled_ns = 0;
    uint64_t not_running_ns = 0;
    uint64_t time_running_ns = 0;
    uint64_t run_delay_ns = 0;
    std::array<uint64_t, core::kMaxEvents> counts{};
  };

 private:
  ColumnReader(const v1::VmTicks& columns, size_t vcpus, size_t events,
               std::span<const size_t> further_events);

  struct Row {
    core::Sample sample;
    std::vector<core::Verdict> verdicts;
  };

  void DecodeBlock();
  void DecodeHead(size_t t, Row& row);

  const v1::VmTicks* columns_;
  size_t vcpus_;
  size_t events_;
  std::vector<size_t> further_events_;
  size_t rows_;
  size_t next_ = 0;         // row that was not decoded yet
  std::vector<Row> block_;  // decoded rows, of which block_next_ is handed out next
  size_t block_rows_ = 0;
  size_t block_next_ = 0;
  core::Sample head_;  // its tick, deadline and wake are those of the last row; it has no vCPUs
  std::vector<uint64_t> sequences_;
  std::vector<bool> scheduler_absent_;  // entry v*rows+t
  std::vector<VcpuState> states_;
  std::vector<GroupState> group_states_;  // entry v*further_events_.size()+g
};

}  // namespace vcpulse::timeline

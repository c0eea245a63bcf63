#pragma once

// An epoch while it goes on: a timeline keeps cumulative values, so each row adds to the sums of
// its vCPU. Times are ns. Pure.

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "monitor/core/sample.h"
#include "monitor/import/import_records.h"
#include "monitor/import/intervals.h"
#include "monitor/import/table.h"

namespace vcpulse::importing {

// What must be the same within an epoch: what is measured, and of which epoch of a recording.
struct Cells {
  uint32_t layout = 0;
  unsigned long times = 0;  // which of them there are
  uint64_t epoch = 0;

  auto operator<=>(const Cells&) const = default;
};

Cells CellsOf(const Row& row);

// The thread of a vCPU, as far as the rows know it.
struct VcpuThread {
  uint32_t vcpu = 0;
  std::optional<uint64_t> tid;
  std::optional<uint64_t> kvm_id;

  bool operator==(const VcpuThread&) const = default;
};

VcpuThread ThreadOf(const Row& row, uint32_t vcpu);

// One epoch while it goes on.
struct Epoch {
  uint32_t number = 0;
  Cells cells;
  const EventGroups* groups = nullptr;
  std::vector<VcpuThread> vcpus;
  core::Sample last;
};

// Whether the rows of one VM at one instant continue `epoch`: they have its cells, vCPUs and
// threads, begin where it ended (or nearly), and no sum passes 2^64. `sample` is then what the
// epoch's sums are after them, at `tick`; else undefined.
bool Continue(const Table& table, const Epoch& epoch, std::span<const Interval> group,
              uint64_t tick, core::Sample& sample);

}  // namespace vcpulse::importing

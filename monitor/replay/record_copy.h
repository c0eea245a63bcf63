#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "monitor/timeline/entry.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::replay {

// Writes the entries of one stream, or of a part of it, as they are. Sequence numbers are given
// anew, so they have no holes. Where the sample before one was not written (the beginning of a
// part, lost records), the vCPU set comes once more, then that sample with nothing but its
// instants, so that what was counted since is still told and nothing of what was left out. One
// thread.
class RecordCopy {
 public:
  // `writer` must outlive it.
  explicit RecordCopy(timeline::RecordWriter& writer) : writer_(writer) {}

  void Take(const timeline::Entry& entry);

  // Samples that were left out, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }

 private:
  using VmEpoch = std::pair<uint32_t, uint32_t>;
  struct Epoch {
    v1::VcpuSet set;
    bool has_sample = false;
    uint64_t latest_tick = 0;
  };

  void TakeTick(const timeline::TickEntry& tick);
  void WriteSet(const v1::VcpuSet& set);

  timeline::RecordWriter& writer_;
  bool has_session_ = false;
  std::map<VmEpoch, Epoch> epochs_;
  uint64_t unusable_ticks_ = 0;
};

}  // namespace vcpulse::replay

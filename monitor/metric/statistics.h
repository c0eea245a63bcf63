#pragma once

// What the host says of a vCPU beside its counters, as progress between two readings.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "monitor/metric/core_neighbours.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::metric {

// What metrics are made of, whatever the source calls it: statistics.cc has the names. Append-only.
enum class Statistic : uint8_t {
  kMigrations,
  kPreemptions,
  kExits,
  kHaltExits,
  kIoExits,
  kSignalExits,
  kHypercalls,
  kWfeExits,
  kHaltPollNs,
  kEnd,  // none: how many there are
};
inline constexpr size_t kStatistics = static_cast<size_t>(Statistic::kEnd);

// What came between two readings of one vCPU.
struct StatisticsDelta {
  struct Progress {
    uint64_t count = 0;
    int64_t time_ns = 0;  // between the readings; 0: not read
    int64_t end_ns = 0;   // CLOCK_MONOTONIC, of the latter
  };

  std::array<Progress, kStatistics> progress{};
  std::optional<uint32_t> cpu{};  // of the host, where it last ran, at the latter
  // Whether that is of another NUMA node than its home: the node on which it was at most readings
  // of its epoch until then. Nothing on a host of one node.
  std::optional<bool> is_remote{};
  // What ran on other threads of its core then (CoreNeighbours).
  std::optional<std::vector<VcpuId>> neighbours{};

  const Progress& Of(Statistic statistic) const { return progress[static_cast<size_t>(statistic)]; }
  // Of the latest reading.
  int64_t EndNs() const { return std::ranges::max(progress, {}, &Progress::end_ns).end_ns; }
};

// The readings of the vCPUs of every epoch. Memory grows with the epochs alone. One thread.
class StatisticsReader {
 public:
  // The NUMA node of each CPU of the host and one, by the CPU's number; 0: not known.
  void SetNodes(std::vector<uint32_t> cpu_nodes) { cpu_nodes_ = std::move(cpu_nodes); }
  // As Session.cpu_cores.
  void SetCores(std::vector<uint32_t> cpu_cores) { neighbours_.SetCores(std::move(cpu_cores)); }
  // Of an epoch with these vCPUs; a record that does not fit is ignored.
  void Add(const v1::Statistics& record, const v1::VcpuSet& set);
  // What was read since the last call for this vCPU; nothing where nothing was.
  std::optional<StatisticsDelta> Take(uint32_t vm, uint32_t epoch, size_t column);
  void EndEpoch(uint32_t vm, uint32_t epoch) {
    epochs_.erase({vm, epoch});
    const auto next = epochs_.lower_bound({vm, 0});
    if (next == epochs_.end() || next->first.first != vm) neighbours_.Forget(vm);
  }

 private:
  struct Reading {
    uint64_t count = 0;
    int64_t mono_ns = 0;
  };
  struct Vcpu {
    std::array<std::optional<Reading>, kStatistics> taken;  // up to where it was handed out
    std::array<std::optional<Reading>, kStatistics> latest;
    std::optional<uint32_t> cpu;
    std::map<uint32_t, uint64_t> nodes;  // readings on each
    uint32_t home = 0;
    std::optional<bool> is_remote;
    std::optional<std::vector<VcpuId>> neighbours;
    bool is_news = false;
  };

  // Takes note of the node of a CPU.
  void Place(Vcpu& vcpu, uint32_t cpu) const;

  std::vector<uint32_t> cpu_nodes_;
  CoreNeighbours neighbours_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Vcpu>> epochs_;  // by (vm, epoch)
};

}  // namespace vcpulse::metric

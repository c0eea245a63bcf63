#pragma once

// What a stretch of time holds, per vCPU and slot of time: sums of the one table of metrics.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/metric/interval.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/recorded_competitors.h"
#include "monitor/timeline/entry.h"
#include "monitor/top/chunk_store.h"

namespace vcpulse::top {

// A stretch of the common axis, in slots of one width: (slot - 1) * slot_ns < t <= slot * slot_ns
// is slot number `slot`, so an interval lies in the slot that holds its end.
struct Window {
  int64_t first_slot = 0;
  size_t slots = 1;
  int64_t slot_ns = 1;
  // Each vCPU's latest interval alone instead of sums: what one tick says.
  bool latest_only = false;
  int64_t until_ns = std::numeric_limits<int64_t>::max();  // nothing later, though a slot holds it

  // That many slots; the last one holds `end_ns`.
  static Window EndingAt(int64_t end_ns, size_t slots, int64_t slot_ns);
  int64_t EndNs() const { return (first_slot + static_cast<int64_t>(slots) - 1) * slot_ns; }
  int64_t BeginNs() const { return (first_slot - 1) * slot_ns; }  // exclusive
  bool operator==(const Window&) const = default;
};

// Where an instant lies in slots of that width.
int64_t SlotOf(int64_t ns, int64_t slot_ns);

struct VmId {
  size_t stream = 0;
  uint32_t vm = 0;

  auto operator<=>(const VmId&) const = default;
};

struct VcpuId {
  VmId vm;
  uint32_t index = 0;

  auto operator<=>(const VcpuId&) const = default;
};

// A marker, or what else is a point on the axis of time.
struct Mark {
  int64_t ns = 0;
  std::string name;
};

// What the slots of one vCPU hold.
struct Track {
  struct Slot {
    int64_t number = 0;
    metric::Totals totals;
  };

  // Nothing measured: an empty sum.
  metric::Totals At(int64_t slot) const;
  metric::Totals Sum() const;
  // To be added to.
  metric::Totals& SlotAt(int64_t number);

  Window window;
  std::vector<Slot> slots;  // slot n at n % size; it may be of an earlier round
  // Of the latest interval in the window; kNone where there is none.
  core::Verdict verdict;
  std::optional<int64_t> latest_ns;  // when that interval ended
  std::optional<uint32_t> cpu;       // of the host, as last read
  // The latest window of hot addresses that ended in the window; null without one.
  std::unique_ptr<v1::HotAddresses> hot;
  int64_t hot_ns = 0;  // when it ended
};

struct BoardVm {
  v1::VmInstance instance;
  std::map<uint32_t, Track> vcpus;  // by index, of the latest epoch and those before
  std::vector<uint32_t> columns;    // the indexes of the latest epoch, in the order of its set
  uint32_t epoch = 0;               // the latest
  uint32_t previous_epoch = 0;
  bool degraded = false;  // no hardware counter is read
  bool ended = false;
};

// How the ticks of the window were taken.
struct TickCost {
  uint64_t ticks = 0;  // each once, though it is of several VMs
  uint64_t samples = 0;
  uint64_t gaps = 0;           // Gap records
  uint64_t missing_ticks = 0;  // that they name
  int64_t read_ns = 0;         // reading, all samples together
  int64_t covered_ns = 0;      // the time of the ticks, each once
  int64_t most_late_ns = 0;

  void operator+=(const TickCost& other);
};

// Takes the records of all streams, each stream's in order. Memory: the window, whatever comes, of
// kMostVcpus at most.
class Board {
 public:
  explicit Board(const Window& window) : window_(window) {}

  // Moves on: slots that lie before are forgotten. `window` differs in first_slot alone, and is not
  // before the one there.
  void MoveTo(const Window& window);
  static constexpr size_t kMostVcpus = 16'384;
  // Takes what lies in the window, and notes what explains it.
  absl::Status Add(size_t stream, const Stream& of, const timeline::Entry& entry);

  const Window& window() const { return window_; }
  const std::map<VmId, BoardVm>& vms() const { return vms_; }
  const Track* Find(const VcpuId& vcpu) const;
  const std::vector<Mark>& marks() const { return marks_; }  // by time
  TickCost Cost() const;
  // Why no hardware counter is read; empty where they are, or it is not known.
  std::string DegradedReason(size_t stream) const;
  // Who had the CPU while it was starved, as far as that was watched in this window and those that
  // this one has moved on from: reading::SharesOf. Empty where it was not.
  std::string CompetitorsOf(const VcpuId& vcpu) const;
  uint64_t omitted_vcpus() const { return omitted_vcpus_; }  // beyond kMostVcpus

 private:
  absl::Status AddTick(size_t stream, const Stream& of, const timeline::Entry& entry,
                       const timeline::TickEntry& tick);
  void Put(const metric::Interval& interval, int64_t begin_ns, int64_t end_ns, Track& track) const;
  void Take(const VmId& vm, const v1::VcpuSet& set);
  void Note(size_t stream, const Stream& of, const timeline::Entry& entry);
  Track* FindTrack(size_t stream, uint32_t vm, uint32_t vcpu);
  TickCost& CostAt(int64_t ns) { return costs_[SlotOf(ns, window_.slot_ns)]; }
  bool Holds(int64_t ns) const {
    return window_.BeginNs() < ns && ns <= std::min(window_.EndNs(), window_.until_ns);
  }

  Window window_;
  std::map<size_t, std::unique_ptr<metric::IntervalReader>> readers_;  // by stream
  std::map<VmId, BoardVm> vms_;
  std::vector<Mark> marks_;
  std::map<int64_t, TickCost> costs_;        // by slot
  std::map<size_t, int64_t> latest_due_ns_;  // of each stream, of a tick that was counted
  std::map<size_t, std::string> degraded_reasons_;
  std::map<size_t, reading::RecordedCompetitors> competitors_;  // by stream
  size_t vcpus_ = 0;
  uint64_t omitted_vcpus_ = 0;
};

}  // namespace vcpulse::top

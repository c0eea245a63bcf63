#pragma once

// When what was there: the phases of a recording, its VMs and the windows in which each vCPU
// existed. Made of all records, of ticks only their instants, before any tick is judged.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/timeline/entry.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::check {

// CLOCK_MONOTONIC; `from_ns` is part of it, `to_ns` is not.
struct TimeRange {
  int64_t from_ns = 0;
  int64_t to_ns = 0;

  int64_t Length() const { return to_ns - from_ns; }
  bool operator==(const TimeRange&) const = default;
};

// `instant` within 146 years of the clock's zero, so that differences of instants never overflow
// whatever a damaged file says. (What was imported may count from 1970.)
int64_t WithinReason(int64_t instant_ns);

// Stretches in order, where those that touch or overlap are one; empty ones are left out.
std::vector<TimeRange> Joined(std::vector<TimeRange> stretches);

// What lies in one of `spans` and in one of `windows`, in order. `spans` are in order and do not
// overlap (they may touch: what lies in two of them is two stretches), `windows` are as Joined
// makes them.
std::vector<TimeRange> Common(std::span<const TimeRange> spans, std::span<const TimeRange> windows);

int64_t TotalLength(std::span<const TimeRange> stretches);

// One epoch of a VM and how the columns of its ticks are to be read.
struct Epoch {
  struct Unopened {
    uint32_t index = 0;
    std::string reason;  // for people
  };

  int64_t from_ns = 0;             // CLOCK_MONOTONIC
  std::optional<int64_t> to_ns;    // nothing: until the recording's end
  std::vector<uint32_t> vcpus;     // their indexes, in the order of the columns
  std::vector<Unopened> unopened;  // they exist too, and are not measured
  bool degraded = false;           // no hardware counter is read
};

struct Vm {
  v1::VmInstance instance;
  // By number. One that a pause of the recording ended, and that no other followed at once, has a
  // second entry with its number and all vCPUs unopened.
  std::multimap<uint32_t, Epoch> epochs;
  std::optional<int64_t> ended_ns;  // nothing: it was there until the recording's end
};

// A VM that was to be recorded and was not.
struct SkippedVm {
  v1::VmInstance instance;
  std::string reason;            // for people
  int64_t from_ns = 0;           // CLOCK_MONOTONIC
  std::optional<int64_t> to_ns;  // when it was recorded, or ended; nothing: never
};

// Takes the records of one stream in order. Memory grows with markers and epochs, not with ticks.
// One thread.
class Timetable {
 public:
  Timetable() = default;
  Timetable(Timetable&&) = default;
  Timetable& operator=(Timetable&&) = default;

  // Errors: InvalidArgument where a second stream begins.
  absl::Status Add(const timeline::Entry& entry);

  const std::optional<v1::Session>& session() const { return session_; }
  const std::map<uint32_t, Vm>& vms() const { return vms_; }  // by number
  // In the order in which they were skipped. Not those without KVM or without a vCPU.
  const std::vector<SkippedVm>& skipped() const { return skipped_; }
  // Nothing where there is none.
  const Epoch* FindEpoch(uint32_t vm, uint32_t epoch) const;

  // From the earliest record to the latest, or to the last read of a tick; empty without either.
  TimeRange Recording() const { return {start_ns_.value_or(0), end_ns_.value_or(0)}; }
  // Between ticks, as was asked for, at most 36 years; 0: not known.
  int64_t Interval_ns() const;
  // Wall clock at the recording's start, ns since 1970; nothing where that is not known.
  std::optional<int64_t> StartRealtimeNs() const;

  // Names of the phases, in the order of their first marker.
  std::vector<std::string> Phases() const;
  // The spans of a phase in order, each without its first `skip_ns`: empty ones are still there.
  // Without a name: the recording.
  std::vector<TimeRange> Spans(const std::optional<std::string>& phase, int64_t skip_ns) const;

  // When this vCPU existed, opened or not.
  std::vector<TimeRange> VcpuWindows(uint32_t vm, uint32_t vcpu) const;
  // When samples of this VM were to be had: it had a vCPU, opened or not.
  std::vector<TimeRange> SampledWindows(uint32_t vm) const;
  // From the end of a VM to the end of the one of `spans` in which it ended; nothing where it ended
  // in none of them. `spans` are in order.
  std::optional<TimeRange> GoneWithin(uint32_t vm, const std::vector<TimeRange>& spans) const;
  // Until when the VM had a vCPU, at most; an epoch without one may come before its end is seen.
  int64_t LastVcpuUntil(uint32_t vm) const;
  // When the recording was paused.
  std::vector<TimeRange> Pauses() const;
  // Whether the last span of `phase` is ended by the recording's end.
  bool LastsToTheEnd(const std::string& phase) const;
  // Of an epoch or a skipped VM, ended by the recording's end at the latest.
  template <typename Lasting>
  TimeRange WindowOf(const Lasting& one) const {
    return {.from_ns = one.from_ns, .to_ns = one.to_ns.value_or(Recording().to_ns)};
  }

 private:
  absl::Status AddSession(const v1::Session& session);
  void AddVcpuSet(const v1::VcpuSet& set);
  void AddMarker(const v1::Marker& marker);
  void AddLifeCycle(const v1::LifeCycle& change);
  void SeeInstant(int64_t mono_ns);
  void EndCurrent(uint32_t vm, int64_t mono_ns);
  void EndSkipped(const v1::VmInstance& instance, int64_t mono_ns);
  void AwaitEpochs(int64_t mono_ns);

  struct Mark {
    std::string name;
    int64_t mono_ns = 0;  // never before the mark before it
  };

  std::optional<v1::Session> session_;
  std::optional<v1::ClockSnapshot> clock_;  // the first
  std::map<uint32_t, Vm> vms_;
  std::map<uint32_t, Epoch*> current_;  // epoch of each VM that has one
  std::vector<SkippedVm> skipped_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> skipped_now_;  // by PID and start time
  std::vector<Mark> marks_;
  std::vector<TimeRange> pauses_;
  std::optional<int64_t> paused_ns_;  // since when
  std::optional<int64_t> start_ns_;
  std::optional<int64_t> end_ns_;
};

}  // namespace vcpulse::check

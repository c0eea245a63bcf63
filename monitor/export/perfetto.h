#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/export/exporter.h"
#include "monitor/export/perfetto_packets.h"
#include "monitor/hotspots/recorded_hotspots.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/metric/interval.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/recorded_competitors.h"

namespace vcpulse::exporting {

// A timeline as a Perfetto trace (ui.perfetto.dev, trace_processor). Tracks: the host, its VMs,
// their vCPUs, in the order of their numbers. A vCPU's track has a slice per run of one band, from
// the beginning of its first interval to the end of its last ("halted", "unknown(between-bands)"),
// with the rules that gave it and their mean confidence; below it are "starved", and the counters
// "IPC" and "residency", a value at the beginning of each interval where it is known, NaN where a
// known one ends.
// Windows of hot addresses and of competitors are slices of tracks "hot code" and "competitors"
// below it, named by what had most of them. Markers are instants of the host's track "markers";
// gaps are slices of the VM's track, or of the host's where they are of all VMs, from the sample
// before to the sample after; what happened to a VM (paused, ended) is an instant of its track.
// Times are CLOCK_BOOTTIME by the latest snapshot, CLOCK_MONOTONIC where none came, and never
// outside of the recording.
//
// Uuids of tracks are made from the stream's id: traces of several recordings, one behind the
// other, are one trace.
class PerfettoExport final : public Exporter {
 public:
  // Where the tracks of a vCPU lie: below its VM, or below the track of its thread, where a trace
  // of the host's scheduler shows when that ran.
  enum class Tracks { kOfVms, kOfThreads };

  // `symbols` name hot addresses.
  explicit PerfettoExport(Sink sink, Tracks tracks = Tracks::kOfVms,
                          hotspots::GuestKernels symbols = {})
      : packets_(std::move(sink)), tracks_(tracks), symbols_(std::move(symbols)) {}

  absl::Status Add(const timeline::Entry& entry) override;
  absl::Status Flush() override { return packets_.Flush(); }
  absl::Status Finish() override;
  uint64_t unusable_ticks() const override { return intervals_.unusable_ticks(); }

 private:
  // What a slice of a vCPU's track is named by.
  struct Kind {
    core::Band band = core::Band::kNone;
    core::Rule rule = core::Rule::kNone;  // of UNKNOWN alone

    bool operator==(const Kind&) const = default;
  };
  // The slice that is open on a track, as far as it is known. Its end is written when it is over.
  struct Run {
    uint64_t track = 0;
    std::optional<Kind> kind{};  // nothing: none is open
    int64_t end_mono_ns = 0;
    int64_t end_ns = 0;               // the same, as it is written
    std::bitset<core::kRules> rules;  // of its intervals
    metric::Ratio confidence;         // of those that have one
  };
  // A counter, which holds its value until something else is written.
  struct Gauge {
    uint64_t track = 0;
    bool is_known = false;
    int64_t end_mono_ns = 0;
    int64_t end_ns = 0;
  };
  struct VcpuTracks {
    Run bands;
    Run starved;
    Gauge ipc;
    Gauge residency;
    // Of windows; each made with the first one.
    uint64_t hot_code = 0;
    uint64_t competitors = 0;
  };
  // A VM, or the host (number 0): gaps of all VMs.
  struct VmTracks {
    uint64_t track = 0;
    std::string name{};
    uint32_t pid = 0;   // 0: not known
    uint64_t gaps = 0;  // made with the first gap; 0 before
    std::optional<v1::Gap::Reason> open_gap{};
    int64_t latest_mono_ns = 0;  // of its samples; 0: none came
    // By index, and TID where tracks are those of threads.
    std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<VcpuTracks>> vcpus{};
  };

  int64_t TimeOf(int64_t mono_ns) const { return clocks_.Boottime(mono_ns).value_or(mono_ns); }
  // Takes note of how far the recording has come, and writes the markers that lie behind that.
  void Reach(int64_t mono_ns);
  void WriteMarkers(bool all);
  // A snapshot for readers, where they know none of these clocks yet.
  void TellClocks(int64_t mono_ns);

  uint64_t HostTrack();
  VmTracks& VmOf(uint32_t vm, const v1::VmInstance* instance);
  VcpuTracks& VcpuOf(VmTracks& vm, const v1::Vcpu& vcpu);
  void AddVcpuTrack(uint64_t number, const VmTracks& vm, const v1::Vcpu& vcpu);
  const std::vector<VcpuTracks*>& TracksFor(const metric::Epoch& epoch);

  absl::Status AddInterval(const metric::Interval& interval);
  void Extend(Run& run, const std::optional<Kind>& kind, int64_t begin_mono_ns,
              int64_t end_mono_ns);
  void End(Run& run);
  void Set(Gauge& gauge, const std::optional<double>& value, const metric::Interval& interval);
  void End(Gauge& gauge);
  void Take(const timeline::TickEntry& tick);
  void Take(const v1::Marker& marker);
  void Take(const v1::Gap& gap);
  void Take(const v1::LifeCycle& change);
  void Take(const timeline::Entry& entry, const v1::HotAddresses& window);
  void Take(const timeline::Entry& entry, const v1::Competitors& window);
  // A slice over a window of a vCPU, on a track of its own. Ignores windows of a vCPU without a
  // track, and those without a text.
  template <typename Window>
  void AddWindow(const Window& window, uint64_t VcpuTracks::* track, const char* track_name,
                 const std::string& text);
  void EndGap(VmTracks& vm, int64_t mono_ns);

  PerfettoPackets packets_;
  const Tracks tracks_;
  const hotspots::GuestKernels symbols_;
  hotspots::RecordedHotspots hotspots_;       // knows the sets alone
  reading::RecordedCompetitors competitors_;  // likewise
  Clocks clocks_;
  metric::IntervalReader intervals_;
  uint64_t next_track_ = 1;
  uint64_t host_ = 0;
  uint64_t markers_track_ = 0;
  std::map<uint32_t, VmTracks> vms_;
  std::unordered_map<const metric::Epoch*, std::vector<VcpuTracks*>> by_epoch_;
  const metric::Epoch* latest_ = nullptr;
  const std::vector<VcpuTracks*>* latest_tracks_ = nullptr;
  std::optional<int64_t> start_mono_ns_;   // of the recording, as far as it was read
  int64_t reached_mono_ns_ = 0;            // the latest instant
  std::vector<v1::Marker> early_markers_;  // stamped later than that
  // Of the snapshot written last: BOOTTIME and REALTIME less MONOTONIC.
  std::optional<int64_t> told_boottime_ahead_ns_;
  std::optional<int64_t> told_realtime_ahead_ns_;
};

}  // namespace vcpulse::exporting

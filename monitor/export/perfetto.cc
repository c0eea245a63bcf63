#include "monitor/export/perfetto.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/reading/labels.h"

namespace vcpulse::exporting {
namespace {

// How far BOOTTIME and REALTIME may move against MONOTONIC before another snapshot is written.
constexpr uint64_t kClockTolerance_ns = 1'000'000;

// Places among siblings.
constexpr int32_t kMarkersRank = -2;
constexpr int32_t kGapsRank = -1;

bool AreClose(const std::optional<int64_t>& a, const std::optional<int64_t>& b) {
  if (!a || !b) return a == b;
  // Modulo 2^64: a damaged file may say anything.
  const uint64_t apart = static_cast<uint64_t>(*a) - static_cast<uint64_t>(*b);
  return apart + kClockTolerance_ns <= 2 * kClockTolerance_ns;
}

}  // namespace

absl::Status PerfettoExport::Add(const timeline::Entry& entry) {
  if (const auto* snapshot = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    clocks_.Take(*snapshot);
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    packets_.Begin(session->stream_id());
  }
  if (std::holds_alternative<v1::VcpuSet>(entry.record)) {
    hotspots_.Add(entry);
    competitors_.Add(entry);
  }
  // Intervals first: a second stream is found there.
  absl::Status status = intervals_.Add(
      entry, [this](const metric::Interval& interval) { return AddInterval(interval); });
  if (!status.ok()) return status;
  if (entry.sequence == 0) return absl::OkStatus();  // context, and no event of its own
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    Take(*tick);
  } else if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    Take(*marker);
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    Take(*gap);
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    Take(*change);
  } else if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) {
    Take(entry, *hot);
  } else if (const auto* competitors = std::get_if<v1::Competitors>(&entry.record)) {
    Take(entry, *competitors);
  } else if (const auto instant = timeline::InstantOf(entry)) {
    Reach(*instant);
  }
  return packets_.EndRow();
}

absl::Status PerfettoExport::Finish() {
  for (auto& [number, vm] : vms_) {
    for (auto& [index, vcpu] : vm.vcpus) {
      End(vcpu->bands);
      End(vcpu->starved);
      End(vcpu->ipc);
      End(vcpu->residency);
    }
    EndGap(vm, reached_mono_ns_);
  }
  WriteMarkers(/*all=*/true);
  return packets_.Flush();
}

void PerfettoExport::Reach(int64_t mono_ns) {
  if (!start_mono_ns_) {
    start_mono_ns_ = mono_ns;
    reached_mono_ns_ = mono_ns;
  }
  reached_mono_ns_ = std::max(reached_mono_ns_, mono_ns);
  TellClocks(mono_ns);
  if (!early_markers_.empty()) WriteMarkers(/*all=*/false);
}

void PerfettoExport::TellClocks(int64_t mono_ns) {
  const std::optional<int64_t> boottime_ahead = clocks_.boottime_ahead();
  const std::optional<int64_t> realtime_ahead = clocks_.realtime_ahead();
  const bool is_told = AreClose(boottime_ahead, told_boottime_ahead_ns_) &&
                       AreClose(realtime_ahead, told_realtime_ahead_ns_);
  if (is_told || (!boottime_ahead && !realtime_ahead)) return;
  told_boottime_ahead_ns_ = boottime_ahead;
  told_realtime_ahead_ns_ = realtime_ahead;
  // Without BOOTTIME its place is taken by the recording's own times.
  packets_.AddSnapshot(TimeOf(mono_ns), boottime_ahead ? std::optional(mono_ns) : std::nullopt,
                       clocks_.Realtime(mono_ns));
}

uint64_t PerfettoExport::HostTrack() {
  if (host_ == 0) {
    host_ = next_track_++;
    const auto& session = intervals_.session();
    const bool named = session && !session->host_name().empty();
    packets_.AddTrack({.number = host_, .name = named ? session->host_name() : "host"});
  }
  return host_;
}

PerfettoExport::VmTracks& PerfettoExport::VmOf(uint32_t vm, const v1::VmInstance* instance) {
  const auto [place, is_new] = vms_.try_emplace(vm);
  VmTracks& tracks = place->second;
  if (!is_new) return tracks;
  if (vm == 0) {
    tracks.track = HostTrack();
    return tracks;
  }
  std::string name = absl::StrCat("VM ", vm);
  if (instance != nullptr && !instance->name().empty()) {
    name = absl::StrCat(name, " ", instance->name());
  }
  if (instance != nullptr && instance->pid() != 0) {
    absl::StrAppend(&name, " (PID ", instance->pid(), ")");
  }
  const uint64_t host = HostTrack();
  tracks.track = next_track_++;
  tracks.name = name;
  if (instance != nullptr) tracks.pid = instance->pid();
  packets_.AddTrack({.number = tracks.track,
                     .parent = host,
                     .name = name,
                     .rank = static_cast<int32_t>(std::min<uint32_t>(vm, INT32_MAX))});
  return tracks;
}

PerfettoExport::VcpuTracks& PerfettoExport::VcpuOf(VmTracks& vm, const v1::Vcpu& member) {
  const bool of_thread = tracks_ == Tracks::kOfThreads;
  std::unique_ptr<VcpuTracks>& tracks = vm.vcpus[{member.index(), of_thread ? member.tid() : 0}];
  if (tracks != nullptr) return *tracks;
  tracks = std::make_unique<VcpuTracks>();
  const uint64_t vcpu = next_track_++;
  tracks->bands.track = vcpu;
  tracks->starved.track = next_track_++;
  tracks->ipc.track = next_track_++;
  tracks->residency.track = next_track_++;
  AddVcpuTrack(vcpu, vm, member);
  packets_.AddTrack({.number = tracks->starved.track, .parent = vcpu, .name = "starved"});
  packets_.AddCounterTrack({.number = tracks->ipc.track, .parent = vcpu, .name = "IPC", .rank = 1},
                           "instructions/cycle");
  packets_.AddCounterTrack(
      {.number = tracks->residency.track, .parent = vcpu, .name = "residency", .rank = 2}, "");
  return *tracks;
}

void PerfettoExport::AddVcpuTrack(uint64_t number, const VmTracks& vm, const v1::Vcpu& vcpu) {
  std::string name = absl::StrCat("vCPU ", vcpu.index());
  if (tracks_ == Tracks::kOfThreads && vm.pid != 0 && vcpu.tid() != 0) {
    const uint64_t thread = next_track_++;
    packets_.AddThreadTrack(thread, vm.pid, vcpu.tid());
    packets_.AddTrack(
        {.number = number, .parent = thread, .name = absl::StrCat(name, " of ", vm.name)});
    return;
  }
  if (vcpu.tid() != 0) absl::StrAppend(&name, " (TID ", vcpu.tid(), ")");
  packets_.AddTrack({.number = number,
                     .parent = vm.track,
                     .name = name,
                     .rank = static_cast<int32_t>(std::min<uint32_t>(vcpu.index(), INT32_MAX))});
}

const std::vector<PerfettoExport::VcpuTracks*>& PerfettoExport::TracksFor(
    const metric::Epoch& epoch) {
  if (latest_ == &epoch) return *latest_tracks_;
  const auto [place, is_new] = by_epoch_.try_emplace(&epoch);
  if (is_new) {
    VmTracks& vm = VmOf(epoch.set.vm(), &epoch.set.instance());
    for (const v1::Vcpu& vcpu : epoch.set.vcpus()) {
      place->second.push_back(&VcpuOf(vm, vcpu));
    }
  }
  latest_ = &epoch;
  latest_tracks_ = &place->second;
  return place->second;
}

absl::Status PerfettoExport::AddInterval(const metric::Interval& interval) {
  const int64_t begin_ns = interval.BeginNs();
  const int64_t end_ns = interval.EndNs();
  TellClocks(begin_ns);
  VcpuTracks& tracks = *TracksFor(interval.epoch)[interval.column];
  const core::Verdict& verdict = interval.verdict;
  std::optional<Kind> kind;
  if (verdict.band != core::Band::kNone) {
    kind = Kind{.band = verdict.band};
    if (verdict.band == core::Band::kUnknown) kind->rule = verdict.rule;
  }
  Extend(tracks.bands, kind, begin_ns, end_ns);
  Extend(tracks.starved, verdict.starved ? std::optional(Kind{}) : std::nullopt, begin_ns, end_ns);
  if (tracks.bands.kind) {
    tracks.bands.rules.set(static_cast<size_t>(verdict.rule));
    tracks.bands.confidence.Add(metric::InfoOf(metric::Metric::kConfidence).of(interval), 1);
  }
  Set(tracks.ipc, metric::ValueOf(metric::Metric::kIpc, interval), interval);
  Set(tracks.residency, metric::ValueOf(metric::Metric::kResidency, interval), interval);
  reached_mono_ns_ = std::max(reached_mono_ns_, end_ns);
  return packets_.EndRow();
}

void PerfettoExport::Extend(Run& run, const std::optional<Kind>& kind, int64_t begin_mono_ns,
                            int64_t end_mono_ns) {
  // An interval that does not begin where the slice ends leaves a hole: samples were lost there.
  const bool goes_on = kind && run.kind == kind && run.end_mono_ns == begin_mono_ns;
  if (!goes_on) {
    End(run);
    if (!kind) return;
    std::string name(reading::BandName(kind->band).value_or("starved"));
    const bool is_band = kind->band != core::Band::kNone;
    if (kind->band == core::Band::kUnknown) {
      absl::StrAppend(&name, "(", ToAbsl(core::ToString(kind->rule)), ")");
    }
    packets_.BeginSlice(run.track, TimeOf(begin_mono_ns), is_band ? "band" : "starved", name);
    run.kind = kind;
  }
  run.end_mono_ns = end_mono_ns;
  run.end_ns = TimeOf(end_mono_ns);
}

void PerfettoExport::End(Run& run) {
  if (!run.kind) return;
  PerfettoPackets::Arguments arguments{.rule = "", .confidence = run.confidence.Value()};
  for (size_t rule = 0; rule < run.rules.size(); ++rule) {
    if (!run.rules.test(rule)) continue;
    absl::StrAppend(&arguments.rule, arguments.rule.empty() ? "" : ", ",
                    ToAbsl(core::ToString(static_cast<core::Rule>(rule))));
  }
  packets_.EndSlice(run.track, run.end_ns, arguments);
  run.kind.reset();
  run.rules.reset();
  run.confidence = {};
}

void PerfettoExport::Set(Gauge& gauge, const std::optional<double>& value,
                         const metric::Interval& interval) {
  if (!value || gauge.end_mono_ns != interval.BeginNs()) End(gauge);
  if (!value) return;
  packets_.AddCounter(gauge.track, TimeOf(interval.BeginNs()), *value);
  gauge.is_known = true;
  gauge.end_mono_ns = interval.EndNs();
  gauge.end_ns = TimeOf(gauge.end_mono_ns);
}

void PerfettoExport::End(Gauge& gauge) {
  if (!gauge.is_known) return;
  packets_.AddCounter(gauge.track, gauge.end_ns, std::numeric_limits<double>::quiet_NaN());
  gauge.is_known = false;
}

void PerfettoExport::Take(const timeline::TickEntry& tick) {
  const int64_t wake_ns = tick.sample.wake_ns;
  const metric::Epoch* epoch =
      intervals_.EpochOf({.vm = tick.vm, .epoch = tick.epoch, .sample = tick.sample});
  VmTracks& vm = VmOf(tick.vm, epoch == nullptr ? nullptr : &epoch->set.instance());
  EndGap(vm, wake_ns);
  vm.latest_mono_ns = std::max(vm.latest_mono_ns, wake_ns);
  VmTracks& all = VmOf(0, nullptr);
  EndGap(all, wake_ns);
  all.latest_mono_ns = std::max(all.latest_mono_ns, wake_ns);
  Reach(wake_ns);
}

// A stamp of the harness may lie before the recording, or after what was read of it.
void PerfettoExport::Take(const v1::Marker& marker) {
  early_markers_.push_back(marker);
  if (start_mono_ns_) WriteMarkers(/*all=*/false);
}

void PerfettoExport::WriteMarkers(bool all) {
  const auto write = [this](const v1::Marker& marker) {
    if (markers_track_ == 0) {
      const uint64_t host = HostTrack();
      markers_track_ = next_track_++;
      packets_.AddTrack(
          {.number = markers_track_, .parent = host, .name = "markers", .rank = kMarkersRank});
    }
    const int64_t start_ns = start_mono_ns_.value_or(marker.mono_ns());
    const int64_t end_ns = std::max(start_ns, reached_mono_ns_);
    const int64_t mono_ns = std::clamp(marker.mono_ns(), start_ns, end_ns);
    packets_.AddInstant(markers_track_, TimeOf(mono_ns), "marker", marker.name());
  };
  const auto later = std::stable_partition(
      early_markers_.begin(), early_markers_.end(),
      [&](const v1::Marker& marker) { return all || marker.mono_ns() <= reached_mono_ns_; });
  std::for_each(early_markers_.begin(), later, write);
  early_markers_.erase(early_markers_.begin(), later);
}

void PerfettoExport::Take(const v1::Gap& gap) {
  Reach(gap.mono_ns());
  VmTracks& vm = VmOf(gap.vm(), nullptr);
  // More of the same before the next sample is the same gap.
  if (vm.open_gap == gap.reason()) return;
  const bool follows_another = vm.open_gap.has_value();
  const int64_t from_ns =
      follows_another || vm.latest_mono_ns == 0 ? gap.mono_ns() : vm.latest_mono_ns;
  EndGap(vm, from_ns);
  if (vm.gaps == 0) {
    vm.gaps = next_track_++;
    packets_.AddTrack({.number = vm.gaps,
                       .parent = vm.track,
                       .name = gap.vm() == 0 ? "gaps of all VMs" : "gaps",
                       .rank = kGapsRank});
  }
  packets_.BeginSlice(vm.gaps, TimeOf(from_ns), "gap",
                      absl::StrCat("gap: ", ToAbsl(reading::GapReasonName(gap.reason()))));
  vm.open_gap = gap.reason();
}

void PerfettoExport::EndGap(VmTracks& vm, int64_t mono_ns) {
  if (!vm.open_gap) return;
  packets_.EndSlice(vm.gaps, TimeOf(mono_ns));
  vm.open_gap.reset();
}

void PerfettoExport::Take(const v1::LifeCycle& change) {
  Reach(change.mono_ns());
  const int64_t mono_ns = std::max(change.mono_ns(), *start_mono_ns_);
  const VmTracks& vm = VmOf(change.vm(), change.has_instance() ? &change.instance() : nullptr);
  std::string name(reading::LifeCycleName(change.kind()));
  if (!change.detail().empty()) absl::StrAppend(&name, ": ", change.detail());
  packets_.AddInstant(vm.track, TimeOf(mono_ns), "vm", name);
}

template <typename Window>
void PerfettoExport::AddWindow(const Window& window, uint64_t VcpuTracks::* track,
                               const char* track_name, const std::string& text) {
  Reach(window.mono_ns());
  const auto vm = vms_.find(window.vm());
  if (vm == vms_.end() || text.empty()) return;
  // Where tracks are those of threads: of the one with the highest TID.
  auto vcpu = vm->second.vcpus.upper_bound({window.vcpu_index(), UINT32_MAX});
  if (vcpu == vm->second.vcpus.begin() || (--vcpu)->first.first != window.vcpu_index()) return;
  VcpuTracks& tracks = *vcpu->second;
  if (tracks.*track == 0) {
    tracks.*track = next_track_++;
    packets_.AddTrack(
        {.number = tracks.*track, .parent = tracks.bands.track, .name = track_name, .rank = 3});
  }
  const int64_t end_ns = std::max(*start_mono_ns_, window.mono_ns());
  const int64_t begin_ns = std::clamp(window.begin_mono_ns(), *start_mono_ns_, end_ns);
  packets_.BeginSlice(tracks.*track, TimeOf(begin_ns), track_name, text);
  packets_.EndSlice(tracks.*track, TimeOf(end_ns));
}

void PerfettoExport::Take(const timeline::Entry& entry, const v1::HotAddresses& window) {
  constexpr size_t kMost = 3;
  hotspots::RecordedHotspots one = hotspots_;
  one.Add(entry);
  const auto hot = one.Of(window.vm(), window.vcpu_index(), symbols_);
  AddWindow(window, &VcpuTracks::hot_code, "hot code", hot ? hotspots::SharesOf(*hot, kMost) : "");
}

void PerfettoExport::Take(const timeline::Entry& entry, const v1::Competitors& window) {
  reading::RecordedCompetitors one = competitors_;
  one.Add(entry);
  const auto totals = one.Of(window.vm(), window.vcpu_index());
  AddWindow(window, &VcpuTracks::competitors, "competitors",
            totals ? reading::SharesOf(*totals) : "");
}

}  // namespace vcpulse::exporting

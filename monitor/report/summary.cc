#include "monitor/report/summary.h"

#include <algorithm>
#include <utility>

#include "monitor/core/features.h"
#include "monitor/replay/rejudge.h"

namespace vcpulse::report {
namespace {

// What a report keeps of lists that a very long recording could make grow.
constexpr size_t kKeptEpochs = 100;  // per VM
constexpr size_t kKeptLifeCycles = 500;
constexpr size_t kKeptGapKinds = 1000;
constexpr size_t kKeptMarkers = 1000;

void AddIpc(IpcTotals& totals, uint64_t cycles, uint64_t instructions) {
  totals.cycles += cycles;
  totals.instructions += instructions;
  totals.per_tick.Add(static_cast<double>(instructions) / static_cast<double>(cycles));
}

}  // namespace

absl::Status Summary::Add(const timeline::Entry& entry) {
  // Context (sequence 0) repeats what lies elsewhere: a chunk's clock is read when it is closed.
  if (const auto instant = timeline::InstantOf(entry); instant && entry.sequence != 0)
    SeeInstant(*instant);
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) return AddSession(*session);
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    AddVcpuSet(*set);
  } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    AddTick(*tick);
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    AddGap(*gap);
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    AddLifeCycle(*change);
  } else if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    AddMarker(*marker);
  } else if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    if (!clock_) clock_ = *clock;
  } else if (const auto* end = std::get_if<v1::Summary>(&entry.record)) {
    end_ = *end;
  }
  return absl::OkStatus();
}

absl::Status Summary::AddSession(const v1::Session& session) {
  if (session_) {
    if (session_->stream_id() == session.stream_id()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "a second recording begins after the first: they can only be reported one at a time");
  }
  session_ = session;
  residency_.Begin(session);
  return absl::OkStatus();
}

void Summary::AddVcpuSet(const v1::VcpuSet& set) {
  VmSummary& vm = vms_[set.vm()];
  if (vm.epochs.contains(set.epoch())) return;  // each chunk brings the sets that it needs
  if (set.has_instance()) vm.instance = set.instance();
  EpochSummary& epoch = vm.epochs[set.epoch()];
  epoch.set = set;
  const core::EpochClassifier::Layout layout = replay::LayoutOf(set);
  epoch.slots = layout.slots;
  epoch.core_pmus = layout.core_pmus;
  for (const v1::Vcpu& vcpu : set.vcpus()) epoch.columns.push_back(ColumnOf(vm, vcpu, set));
  residency_without_ref_cycles_ =
      residency_without_ref_cycles_ || (epoch.slots.cycles && !epoch.slots.ref_cycles);
  if (vm.epochs.size() > kKeptEpochs) {
    vm.epochs.erase(vm.epochs.begin());
    ++vm.epochs_omitted;
  }
}

void Summary::AddTick(const timeline::TickEntry& tick) {
  AddCost(tick.sample);
  const auto vm = vms_.find(tick.vm);
  if (vm == vms_.end()) {
    ++unattributed_ticks_;
    return;
  }
  const auto found = vm->second.epochs.find(tick.epoch);
  if (found == vm->second.epochs.end() ||
      found->second.columns.size() != tick.sample.vcpus.size()) {
    ++unattributed_ticks_;
    return;
  }
  EpochSummary& epoch = found->second;
  ++vm->second.samples;
  ++epoch.samples;
  const bool has_previous =
      tick.previous != nullptr && tick.previous->vcpus.size() == tick.sample.vcpus.size();
  for (size_t i = 0; i < epoch.columns.size(); ++i) {
    ++epoch.columns[i].vcpu->samples;
    if (!has_previous) {
      for (EventTotal& total : epoch.columns[i].vcpu->events) total.Settle();
      continue;
    }
    const core::Verdict verdict = i < tick.verdicts.size() ? tick.verdicts[i] : core::Verdict{};
    const std::span<const core::VcpuDelta> groups = deltas_.Of(*tick.previous, tick.sample, i);
    AddVcpuDelta(epoch, epoch.columns[i], groups, reading::WithinKnown(verdict));
  }
}

void Summary::AddVcpuDelta(const EpochSummary& epoch, const EpochSummary::Column& column,
                           std::span<const core::VcpuDelta> groups, core::Verdict verdict) {
  const std::span<const core::VcpuDelta> pmus =
      groups.first(std::min(epoch.core_pmus, groups.size()));
  const core::VcpuDelta delta = reading::AddPmus(pmus);
  if (delta.interval_ns <= 0) return;
  VcpuSummary& vcpu = *column.vcpu;
  vcpu.measured_ns += delta.interval_ns;
  vcpu.time_enabled_ns += delta.time_enabled_ns;
  vcpu.time_running_ns += delta.time_running_ns;

  const auto band = static_cast<size_t>(verdict.band);
  vcpu.band_ns[band] += delta.interval_ns;
  ++vcpu.band_ticks[band];
  if (verdict.band != core::Band::kNone) {
    vcpu.rule_ns[static_cast<size_t>(verdict.rule)] += delta.interval_ns;
    if (verdict.starved) vcpu.starved_ns += delta.interval_ns;
    if (verdict.starved || delta.run_delay_ns) vcpu.starved_known_ns += delta.interval_ns;
    if (verdict.raw_band != verdict.band) vcpu.held_ns += delta.interval_ns;
    if (verdict.confidence_pct > 0) {
      vcpu.confident_ns += delta.interval_ns;
      vcpu.confidence_x_ns +=
          verdict.confidence_pct / 100.0 * static_cast<double>(delta.interval_ns);
    }
  }

  AddEvents(column, groups);
  const bool judged_busy = verdict.band != core::Band::kNone && verdict.band != core::Band::kHalted;
  if (judged_busy && core::Ipc(delta, epoch.slots)) {
    const uint64_t cycles = delta.counts[*epoch.slots.cycles];
    const uint64_t instructions = delta.counts[*epoch.slots.instructions];
    AddIpc(vcpu.ipc, cycles, instructions);
    AddIpc(vcpu.ipc_by_band[band], cycles, instructions);
  }

  if (const auto residency = residency_.Of(pmus, epoch.slots)) {
    vcpu.resident_ns += *residency * static_cast<double>(delta.interval_ns);
    vcpu.residency_known_ns += delta.interval_ns;
  }
  if (delta.run_ns && delta.run_delay_ns) {
    vcpu.run_ns += *delta.run_ns;
    vcpu.run_delay_ns += *delta.run_delay_ns;
    vcpu.scheduler_known_ns += delta.interval_ns;
  }
}

void Summary::AddGap(const v1::Gap& gap) {
  const std::optional<uint32_t> vcpu =
      gap.has_vcpu_index() ? std::optional<uint32_t>(gap.vcpu_index()) : std::nullopt;
  GapTotals& totals = gap.vm() == 0 ? gaps_ : vms_[gap.vm()].gaps;
  GapKey key{gap.reason(), vcpu, gap.error()};
  if (totals.size() >= kKeptGapKinds && !totals.contains(key)) {
    key = {gap.reason(), std::nullopt, 0};
  }
  const uint64_t ticks =
      gap.last_tick() >= gap.first_tick() ? gap.last_tick() - gap.first_tick() + 1 : 1;
  GapTotal& total = totals[key];
  if (total.records == 0) total.first_mono_ns = gap.mono_ns();
  total.last_mono_ns = gap.mono_ns();
  ++total.records;
  total.ticks += ticks;
  // A missed tick concerns every VM; were it told once per VM, it would still be one tick.
  if (gap.reason() == v1::Gap::REASON_TICK_MISSED && gap.vm() == 0) {
    own_cost_.ticks_missed += ticks;
  }
}

void Summary::AddMarker(const v1::Marker& marker) {
  markers_.push_back(marker);
  if (markers_.size() > kKeptMarkers) {
    markers_.pop_front();
    ++markers_omitted_;
  }
}

void Summary::AddLifeCycle(const v1::LifeCycle& change) {
  if (change.kind() == v1::LifeCycle::KIND_VM_ENDED && vms_.contains(change.vm())) {
    vms_[change.vm()].ended_mono_ns = change.mono_ns();
  }
  life_cycle_.push_back(change);
  if (life_cycle_.size() > kKeptLifeCycles) {
    life_cycle_.pop_front();
    ++life_cycle_omitted_;
  }
}

void Summary::AddCost(const core::Sample& sample) {
  if (!last_tick_ || sample.tick > *last_tick_) {
    ++own_cost_.ticks;
    own_cost_.lateness_ns.Add(static_cast<double>(sample.wake_ns - sample.deadline_ns));
    last_tick_ = sample.tick;
  }
  if (sample.vcpus.empty()) return;
  for (const core::VcpuSample& vcpu : sample.vcpus) {
    own_cost_.read_ns.Add(static_cast<double>(vcpu.read_end_ns - vcpu.read_begin_ns));
  }
  own_cost_.skew_ns.Add(
      static_cast<double>(sample.vcpus.back().read_end_ns - sample.vcpus.front().read_begin_ns));
}

void Summary::SeeInstant(int64_t mono_ns) {
  first_mono_ns_ = std::min(first_mono_ns_.value_or(mono_ns), mono_ns);
  last_mono_ns_ = std::max(last_mono_ns_.value_or(mono_ns), mono_ns);
}

}  // namespace vcpulse::report

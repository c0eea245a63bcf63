#include "monitor/report/summary.h"

#include <algorithm>
#include <utility>

#include "monitor/core/features.h"

namespace vcpulse::report {
namespace {

// What a report keeps of lists that a very long recording could make grow.
constexpr size_t kKeptEpochs = 100;  // per VM
constexpr size_t kKeptLifeCycles = 500;
constexpr size_t kKeptGapKinds = 1000;

// A schema newer than this program may know more of them.
core::Verdict WithinKnown(core::Verdict verdict) {
  if (static_cast<size_t>(verdict.band) >= core::kBands) verdict.band = core::Band::kNone;
  if (static_cast<size_t>(verdict.rule) >= core::kRules) verdict.rule = core::Rule::kNone;
  return verdict;
}

// The deltas of one vCPU's groups, the main one first; how many there are.
size_t SubtractGroups(const core::Sample& earlier, const core::Sample& later, size_t vcpu,
                      std::span<core::VcpuDelta, core::kMaxGroups> deltas) {
  const core::VcpuSample& before = earlier.vcpus[vcpu];
  const core::VcpuSample& now = later.vcpus[vcpu];
  deltas[0] = core::Subtract(before, now);
  const size_t further =
      std::min({earlier.FurtherGroups(), later.FurtherGroups(), core::kMaxGroups - 1});
  for (size_t g = 0; g < further; ++g) {
    const size_t i = vcpu * further + g;
    deltas[g + 1] = core::Subtract(core::WithGroup(before, earlier.further[i]),
                                   core::WithGroup(now, later.further[i]));
  }
  return further + 1;
}

void AddIpc(IpcTotals& totals, uint64_t cycles, uint64_t instructions) {
  totals.cycles += cycles;
  totals.instructions += instructions;
  totals.per_tick.Add(static_cast<double>(instructions) / static_cast<double>(cycles));
}

}  // namespace

absl::Status Summary::Add(const timeline::Entry& entry) {
  // Context (sequence 0) repeats what lies elsewhere: a chunk's clock is read when it is closed.
  if (const auto instant = InstantOf(entry); instant && entry.sequence != 0) SeeInstant(*instant);
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) return AddSession(*session);
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    AddVcpuSet(*set);
  } else if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    AddTick(*tick);
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    AddGap(*gap);
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    AddLifeCycle(*change);
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
  std::vector<double> max_hz = {session.max_hz()};
  max_hz.insert(max_hz.end(), session.further_max_hz().begin(), session.further_max_hz().end());
  if (max_hz.size() > core::kMaxGroups) max_hz.resize(core::kMaxGroups);
  std::vector<core::ResidencyBasis> bases;
  for (const double hz : max_hz) {
    core::ResidencyBasis& basis = bases.emplace_back();
    if (session.tsc_hz() > 0) basis.tsc_hz = session.tsc_hz();
    if (hz > 0) basis.max_hz = hz;
  }
  residency_ = core::ResidencyEstimator(std::move(bases));
  return absl::OkStatus();
}

void Summary::AddVcpuSet(const v1::VcpuSet& set) {
  VmSummary& vm = vms_[set.vm()];
  if (vm.epochs.contains(set.epoch())) return;  // each chunk brings the sets that it needs
  if (set.has_instance()) vm.instance = set.instance();
  EpochSummary& epoch = vm.epochs[set.epoch()];
  epoch.set = set;
  const auto slots = std::min<size_t>(core::kMaxEvents, static_cast<size_t>(set.events_size()));
  epoch.slots = core::FindSlots(std::vector<std::string>(
      set.events().begin(), set.events().begin() + static_cast<int>(slots)));
  const size_t groups = 1 + static_cast<size_t>(set.further_groups_size());
  epoch.core_pmus = std::clamp<size_t>(set.core_pmus(), 1, std::min(groups, core::kMaxGroups));
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
    std::array<core::VcpuDelta, core::kMaxGroups> deltas;
    const size_t groups = SubtractGroups(*tick.previous, tick.sample, i, deltas);
    AddVcpuDelta(epoch, epoch.columns[i], std::span(deltas).first(groups), WithinKnown(verdict));
  }
}

void Summary::AddVcpuDelta(const EpochSummary& epoch, const EpochSummary::Column& column,
                           std::span<const core::VcpuDelta> groups, core::Verdict verdict) {
  const std::span<const core::VcpuDelta> pmus =
      groups.first(std::min(epoch.core_pmus, groups.size()));
  core::VcpuDelta delta = pmus.front();
  for (const core::VcpuDelta& other : pmus.subspan(1)) delta = core::AddPmu(delta, other);
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
  }

  AddEvents(column, groups);
  const bool judged_busy = verdict.band != core::Band::kNone && verdict.band != core::Band::kHalted;
  if (judged_busy && core::Ipc(delta, epoch.slots)) {
    const uint64_t cycles = delta.counts[*epoch.slots.cycles];
    const uint64_t instructions = delta.counts[*epoch.slots.instructions];
    AddIpc(vcpu.ipc, cycles, instructions);
    AddIpc(vcpu.ipc_by_band[band], cycles, instructions);
  }

  if (const auto residency = ResidencyOf(pmus, epoch.slots)) {
    vcpu.resident_ns += *residency * static_cast<double>(delta.interval_ns);
    vcpu.residency_known_ns += delta.interval_ns;
  }
  if (delta.run_ns && delta.run_delay_ns) {
    vcpu.run_ns += *delta.run_ns;
    vcpu.run_delay_ns += *delta.run_delay_ns;
    vcpu.scheduler_known_ns += delta.interval_ns;
  }
}

std::optional<double> Summary::ResidencyOf(std::span<const core::VcpuDelta> pmus,
                                           const core::EventSlots& slots) {
  if (session_ && session_->residency_method() == v1::RESIDENCY_METHOD_TIME_ENABLED) {
    return std::min(1.0, static_cast<double>(pmus.front().time_enabled_ns) /
                             static_cast<double>(pmus.front().interval_ns));
  }
  for (size_t pmu = 0; pmu < pmus.size(); ++pmu) residency_.Observe(pmus[pmu], slots, pmu);
  return core::Residency(pmus, slots, residency_.bases());
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

std::optional<int64_t> InstantOf(const timeline::Entry& entry) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record))
    return tick->sample.wake_ns;
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) return set->mono_ns();
  if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) return marker->mono_ns();
  if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) return gap->mono_ns();
  if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) return change->mono_ns();
  if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) return clock->mono_ns();
  return std::nullopt;
}

}  // namespace vcpulse::report

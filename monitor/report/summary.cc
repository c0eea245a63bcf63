#include "monitor/report/summary.h"

#include <algorithm>
#include <utility>

#include "monitor/reading/part.h"

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

constexpr size_t kKeptTids = 16;  // per vCPU

// Which of the vCPU's totals an event belongs to, making one if it is new.
size_t EventTotalOf(VcpuSummary& vcpu, const std::string& event) {
  for (size_t i = 0; i < vcpu.events.size(); ++i) {
    if (vcpu.events[i].event == event) return i;
  }
  vcpu.events.push_back({.event = event});
  return vcpu.events.size() - 1;
}

template <typename Events>
std::vector<EpochSummary::Slot> SlotsOf(
    VcpuSummary& vcpu, const Events& events,
    const std::vector<std::vector<EpochSummary::Slot>>& before) {
  std::vector<EpochSummary::Slot> slots;
  for (const std::string& event : events) {
    if (slots.size() == core::kMaxEvents) break;
    const size_t total = EventTotalOf(vcpu, event);
    const bool known = std::ranges::any_of(before, [total](const auto& group) {
      return std::ranges::find(group, total, &EpochSummary::Slot::total) != group.end();
    });
    vcpu.events[total].on_many_pmus = vcpu.events[total].on_many_pmus || known;
    slots.push_back({.total = total, .brings_time = !known});
  }
  return slots;
}

}  // namespace

absl::Status Summary::Add(const timeline::Entry& entry, metric::IntervalReader::Sink also) {
  // Context (sequence 0) repeats what lies elsewhere: a chunk's clock is read when it is closed.
  if (const auto instant = timeline::InstantOf(entry); instant && entry.sequence != 0)
    SeeInstant(*instant);
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    intervals_.Add(*set);
    hotspots_.Add(entry);
    competitors_.Add(entry);
    AddVcpuSet(*set);  // may forget one
    return absl::OkStatus();
  }
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    AddSample(*tick);
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
  } else if (std::holds_alternative<v1::HotAddresses>(entry.record)) {
    hotspots_.Add(entry);
  } else if (std::holds_alternative<v1::Competitors>(entry.record)) {
    competitors_.Add(entry);
  } else if (const auto* read = std::get_if<v1::Statistics>(&entry.record)) {
    if (const auto vm = vms_.find(read->vm()); vm != vms_.end()) {
      vm->second.kvm_missing = read->kvm_missing();
    }
  }
  return intervals_.Add(entry, [&](const metric::Interval& interval) {
    AddInterval(interval);
    phases_.Add(interval, reading::PlaceOf(std::get<timeline::TickEntry>(entry.record)));
    return also(interval);
  });
}

void Summary::AddVcpuSet(const v1::VcpuSet& set) {
  VmSummary& vm = vms_[set.vm()];
  if (vm.epochs.contains(set.epoch())) return;  // each chunk brings the sets that it needs
  if (set.has_instance()) vm.instance = set.instance();
  EpochSummary& epoch = vm.epochs[set.epoch()];
  epoch.set = set;
  for (const v1::Vcpu& vcpu : set.vcpus()) epoch.columns.push_back(ColumnOf(vm, vcpu, set));
  const core::EventSlots slots = core::FindSlots(set.events());
  residency_without_ref_cycles_ =
      residency_without_ref_cycles_ || (slots.cycles && !slots.ref_cycles);
  if (vm.epochs.size() > kKeptEpochs) {
    intervals_.EndEpoch(set.vm(), vm.epochs.begin()->first);
    vm.epochs.erase(vm.epochs.begin());
    ++vm.epochs_omitted;
  }
}

void Summary::AddSample(const timeline::TickEntry& tick) {
  AddCost(tick.sample, tick.previous);
  sampled_ = nullptr;
  const metric::Tick read{.vm = tick.vm, .epoch = tick.epoch, .sample = tick.sample};
  if (intervals_.EpochOf(read) == nullptr) return;
  VmSummary& vm = vms_.at(tick.vm);
  sampled_ = &vm.epochs.at(tick.epoch);
  ++vm.samples;
  ++sampled_->samples;
  const bool follows =
      tick.previous != nullptr &&
      intervals_.EpochOf({.vm = tick.vm, .epoch = tick.epoch, .sample = *tick.previous}) != nullptr;
  for (const EpochSummary::Column& column : sampled_->columns) {
    ++column.vcpu->samples;
    if (follows) continue;
    for (EventTotal& total : column.vcpu->events) total.Settle();
  }
}

void Summary::AddInterval(const metric::Interval& interval) {
  const EpochSummary::Column& column = sampled_->columns[interval.column];
  VcpuSummary& vcpu = *column.vcpu;
  const core::Verdict& verdict = interval.verdict;
  const auto band = static_cast<size_t>(verdict.band);
  vcpu.totals.Add(interval);
  vcpu.uncounted.Add(interval);
  vcpu.polling.Add(interval);
  ++vcpu.band_ticks[band];
  if (interval.IsJudged()) {
    vcpu.rule_ns[static_cast<size_t>(verdict.rule)] += interval.delta.interval_ns;
  }
  const int64_t begin_ns = interval.BeginNs();
  const int64_t end_ns = interval.EndNs();
  vcpu.spin.Add(begin_ns, end_ns, !interval.misses_ticks && verdict.band == core::Band::kSpinning);
  vcpu.starved.Add(begin_ns, end_ns, !interval.misses_ticks && interval.Starved().value_or(false));
  AddEvents(column, interval.groups);
  if (interval.statistics != nullptr && interval.statistics->cpu) {
    vcpu.host_cpus.Add(end_ns, *interval.statistics->cpu);
  }
  if (interval.statistics != nullptr && interval.statistics->neighbours) {
    vcpu.smt.Add(*interval.statistics->neighbours);
  }
  if (metric::IsBusy(interval) && metric::ValueOf(metric::Metric::kIpc, interval)) {
    const core::EventSlots& slots = interval.epoch.slots;
    const uint64_t cycles = interval.delta.counts[*slots.cycles];
    const uint64_t instructions = interval.delta.counts[*slots.instructions];
    AddIpc(vcpu.ipc, cycles, instructions);
    AddIpc(vcpu.ipc_by_band[band], cycles, instructions);
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
  phases_.Add(marker);
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

void Summary::AddCost(const core::Sample& sample, const core::Sample* previous) {
  if (!last_tick_ || sample.tick > *last_tick_) {
    ++own_cost_.ticks;
    own_cost_.lateness_ns.Add(static_cast<double>(sample.wake_ns - sample.deadline_ns));
    last_tick_ = sample.tick;
  }
  if (sample.vcpus.empty()) return;
  const std::optional<v1::Session>& session = this->session();
  const bool by_bpf = session && session->reader() == "bpf";
  const bool by_read = session && session->reader() == "read";  // neither: by another tool
  int64_t first_ns = sample.vcpus.front().read_begin_ns;
  int64_t last_ns = first_ns;
  const bool same_vcpus = previous != nullptr && previous->vcpus.size() == sample.vcpus.size();
  for (size_t i = 0; i < sample.vcpus.size(); ++i) {
    const core::VcpuSample& vcpu = sample.vcpus[i];
    first_ns = std::min(first_ns, vcpu.read_begin_ns);
    last_ns = std::max(last_ns, vcpu.read_end_ns);
    if (same_vcpus && previous->vcpus[i].read_end_ns == vcpu.read_end_ns) continue;  // once more
    if (by_bpf && vcpu.read_begin_ns == vcpu.read_end_ns) {
      ++own_cost_.kept;
      const int64_t age_ns = sample.wake_ns - vcpu.read_end_ns;
      if (age_ns > 0) own_cost_.age_ns.Add(static_cast<double>(age_ns));
    } else if (!by_read || vcpu.read_begin_ns != vcpu.read_end_ns) {  // else it was known to rest
      own_cost_.read_ns.Add(static_cast<double>(vcpu.read_end_ns - vcpu.read_begin_ns));
    }
  }
  own_cost_.skew_ns.Add(static_cast<double>(last_ns - first_ns));
}

void Summary::SeeInstant(int64_t mono_ns) {
  first_mono_ns_ = std::min(first_mono_ns_.value_or(mono_ns), mono_ns);
  last_mono_ns_ = std::max(last_mono_ns_.value_or(mono_ns), mono_ns);
}

EpochSummary::Column ColumnOf(VmSummary& vm, const v1::Vcpu& member, const v1::VcpuSet& set) {
  VcpuSummary& vcpu = vm.vcpus[member.index()];
  vcpu.index = member.index();
  if (member.has_kvm_id()) vcpu.kvm_id = member.kvm_id();
  const auto known = std::find(vcpu.tids.begin(), vcpu.tids.end(), member.tid());
  if (known != vcpu.tids.end()) vcpu.tids.erase(known);
  if (vcpu.tids.size() == kKeptTids) vcpu.tids.erase(vcpu.tids.begin());
  vcpu.tids.push_back(member.tid());

  EpochSummary::Column column{.vcpu = &vcpu, .groups = {}};
  column.groups.push_back(SlotsOf(vcpu, set.events(), column.groups));
  for (const v1::EventGroup& group : set.further_groups()) {
    column.groups.push_back(SlotsOf(vcpu, group.events(), column.groups));
  }
  return column;
}

void AddEvents(const EpochSummary::Column& column, std::span<const core::VcpuDelta> groups) {
  for (size_t g = 0; g < std::min(groups.size(), column.groups.size()); ++g) {
    const core::VcpuDelta& delta = groups[g];
    for (size_t slot = 0; slot < column.groups[g].size(); ++slot) {
      const EpochSummary::Slot& place = column.groups[g][slot];
      EventTotal& total = column.vcpu->events[place.total];
      total.raw += delta.counts[slot];
      total.time_running_ns += delta.time_running_ns;
      if (!place.brings_time) continue;
      total.time_enabled_ns += delta.time_enabled_ns;
      total.interval_ns += delta.interval_ns;
    }
  }
}

}  // namespace vcpulse::report

#include "monitor/top/board.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace vcpulse::top {
namespace {

// A timeline may have any number of markers; those of a window fit a screen.
constexpr size_t kMostMarks = 4096;

// From one to the other, where that can be: 0 to an hour, whatever a damaged file says.
int64_t Elapsed(int64_t from_ns, int64_t to_ns) {
  constexpr uint64_t kMost_ns = 3'600'000'000'000;
  if (to_ns <= from_ns) return 0;
  return static_cast<int64_t>(
      std::min(static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns), kMost_ns));
}

void EndEpochs(metric::IntervalReader& reader, uint32_t number, const BoardVm& vm) {
  reader.EndEpoch(number, vm.epoch);
  reader.EndEpoch(number, vm.previous_epoch);
}

}  // namespace

int64_t SlotOf(int64_t ns, int64_t slot_ns) {
  const int64_t down = ns / slot_ns;
  return ns > 0 && ns % slot_ns != 0 ? down + 1 : down;
}

Window Window::EndingAt(int64_t end_ns, size_t slots, int64_t slot_ns) {
  return {.first_slot = SlotOf(end_ns, slot_ns) - static_cast<int64_t>(slots) + 1,
          .slots = slots,
          .slot_ns = slot_ns};
}

metric::Totals Track::At(int64_t slot) const {
  if (slots.empty() || slot < window.first_slot ||
      slot >= window.first_slot + static_cast<int64_t>(window.slots)) {
    return {};
  }
  const auto size = static_cast<int64_t>(slots.size());
  const Slot& found = slots[static_cast<size_t>(((slot % size) + size) % size)];
  return found.number == slot ? found.totals : metric::Totals();
}

metric::Totals Track::Sum() const {
  metric::Totals sum;
  const int64_t end = window.first_slot + static_cast<int64_t>(window.slots);
  for (const Slot& slot : slots) {
    if (slot.number >= window.first_slot && slot.number < end) sum.Add(slot.totals);
  }
  return sum;
}

metric::Totals& Track::SlotAt(int64_t number) {
  if (slots.empty()) slots.resize(window.slots, {.number = number - 1, .totals = {}});
  const auto size = static_cast<int64_t>(slots.size());
  Slot& slot = slots[static_cast<size_t>(((number % size) + size) % size)];
  if (slot.number != number) slot = {.number = number, .totals = {}};
  return slot.totals;
}

void TickCost::operator+=(const TickCost& other) {
  ticks += other.ticks;
  samples += other.samples;
  gaps += other.gaps;
  missing_ticks += other.missing_ticks;
  read_ns += other.read_ns;
  covered_ns += other.covered_ns;
  most_late_ns = std::max(most_late_ns, other.most_late_ns);
}

TickCost Board::Cost() const {
  TickCost sum;
  for (const auto& [slot, cost] : costs_) sum += cost;
  return sum;
}

std::string Board::DegradedReason(size_t stream) const {
  const auto found = degraded_reasons_.find(stream);
  return found == degraded_reasons_.end() ? "" : found->second;
}

void Board::MoveTo(const Window& window) {
  window_ = window;
  std::erase_if(marks_, [&](const Mark& mark) { return mark.ns <= window.BeginNs(); });
  costs_.erase(costs_.begin(), costs_.lower_bound(window.first_slot));
  for (auto& [id, vm] : vms_) {
    for (auto& [index, track] : vm.vcpus) {
      track.window = window;
      if (track.latest_ns && !Holds(*track.latest_ns)) {
        track.latest_ns.reset();
        track.verdict = {};
      }
      if (track.hot && !Holds(track.hot_ns)) track.hot.reset();
    }
  }
  // One that has ended goes with its last interval.
  std::erase_if(vms_, [&](const auto& entry) {
    const auto& [id, vm] = entry;
    const bool is_seen = std::ranges::any_of(
        vm.vcpus, [](const auto& vcpu) { return vcpu.second.latest_ns.has_value(); });
    if (!vm.ended || is_seen) return false;
    vcpus_ -= vm.vcpus.size();
    if (const auto& reader = readers_[id.stream]) EndEpochs(*reader, id.vm, vm);
    return true;
  });
}

absl::Status Board::Add(size_t stream, const Stream& of, const timeline::Entry& entry) {
  auto& reader = readers_[stream];
  if (!reader) reader = std::make_unique<metric::IntervalReader>();
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    return AddTick(stream, of, entry, *tick);
  }
  absl::Status status = reader->Add(entry, metric::PassOver);
  if (status.ok()) Note(stream, of, entry);
  return status;
}

absl::Status Board::AddTick(size_t stream, const Stream& of, const timeline::Entry& entry,
                            const timeline::TickEntry& tick) {
  const int64_t end_ns = of.OnAxis(tick.sample.wake_ns);
  const bool inside = Holds(end_ns);
  const int64_t begin_ns = tick.previous != nullptr ? of.OnAxis(tick.previous->wake_ns) : end_ns;
  if (inside) {
    TickCost& cost = CostAt(end_ns);
    // Of all VMs of a host the deadline is the same.
    const int64_t due_ns = of.OnAxis(tick.sample.deadline_ns);
    const auto [latest, is_first] = latest_due_ns_.try_emplace(stream, due_ns);
    if (is_first || due_ns > latest->second) {
      latest->second = due_ns;
      ++cost.ticks;
      cost.covered_ns += Elapsed(begin_ns, end_ns);
    }
    ++cost.samples;
    cost.most_late_ns = std::max(cost.most_late_ns, Elapsed(due_ns, end_ns));
    for (const core::VcpuSample& vcpu : tick.sample.vcpus) {
      cost.read_ns += Elapsed(vcpu.read_begin_ns, vcpu.read_end_ns);
    }
  }
  const auto vm = vms_.find({stream, tick.vm});
  return readers_[stream]->Add(entry, [&](const metric::Interval& interval) {
    if (!inside || vm == vms_.end()) return absl::OkStatus();
    const auto track = vm->second.vcpus.find(interval.Vcpu().index());
    if (track != vm->second.vcpus.end()) Put(interval, begin_ns, end_ns, track->second);
    return absl::OkStatus();
  });
}

void Board::Put(const metric::Interval& interval, int64_t begin_ns, int64_t end_ns,
                Track& track) const {
  metric::Totals one;
  one.Add(interval);
  const int64_t last = SlotOf(end_ns, window_.slot_ns);
  const int64_t first = std::max(SlotOf(begin_ns + 1, window_.slot_ns), window_.first_slot);
  if (window_.latest_only) {
    track.slots.assign(1, {.number = last, .totals = one});
  } else if (first >= last) {
    track.SlotAt(last).Add(one);
  } else {
    const auto length = static_cast<double>(end_ns - begin_ns);
    for (int64_t slot = first; slot <= last; ++slot) {
      const int64_t from = std::max(begin_ns, (slot - 1) * window_.slot_ns);
      const int64_t to = std::min(end_ns, slot * window_.slot_ns);
      track.SlotAt(slot).Add(one, static_cast<double>(to - from) / length);
    }
  }
  if (!track.latest_ns || *track.latest_ns <= end_ns) {
    track.latest_ns = end_ns;
    track.verdict = interval.verdict;
  }
}

void Board::Take(const VmId& id, const v1::VcpuSet& set) {
  BoardVm& vm = vms_[id];
  if (set.epoch() < vm.epoch) return;  // it still ticks while the next one begins
  if (set.epoch() > vm.epoch) {
    readers_[id.stream]->EndEpoch(id.vm, vm.previous_epoch);
    vm.previous_epoch = std::exchange(vm.epoch, set.epoch());
  }
  vm.instance = set.instance();
  vm.degraded = set.event_set() == "degraded";
  vm.columns.clear();
  for (const v1::Vcpu& vcpu : set.vcpus()) {
    vm.columns.push_back(vcpu.index());
    if (!vm.vcpus.contains(vcpu.index())) {
      if (vcpus_ == kMostVcpus) {
        ++omitted_vcpus_;
        continue;
      }
      ++vcpus_;
    }
    vm.vcpus[vcpu.index()].window = window_;
  }
}

Track* Board::FindTrack(size_t stream, uint32_t vm, uint32_t vcpu) {
  const auto found = vms_.find({stream, vm});
  if (found == vms_.end()) return nullptr;
  const auto track = found->second.vcpus.find(vcpu);
  return track == found->second.vcpus.end() ? nullptr : &track->second;
}

void Board::Note(size_t stream, const Stream& of, const timeline::Entry& entry) {
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    if (!session->degraded_reason().empty()) {
      degraded_reasons_[stream] = session->degraded_reason();
    }
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    Take({stream, set->vm()}, *set);
  } else if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    const int64_t ns = of.OnAxis(marker->mono_ns());
    if (!Holds(ns)) return;
    if (marks_.size() >= kMostMarks) marks_.erase(marks_.begin());
    const auto at = std::ranges::upper_bound(marks_, ns, {}, &Mark::ns);
    marks_.insert(at, {.ns = ns, .name = marker->name()});
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    if (Holds(of.OnAxis(gap->mono_ns()))) {
      TickCost& cost = CostAt(of.OnAxis(gap->mono_ns()));
      ++cost.gaps;
      cost.missing_ticks += std::min<uint64_t>(gap->last_tick() - gap->first_tick(), 1u << 30) + 1;
    }
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    const auto vm = vms_.find({stream, change->vm()});
    if (vm != vms_.end() && change->kind() == v1::LifeCycle::KIND_VM_ENDED &&
        of.OnAxis(change->mono_ns()) <= std::min(window_.EndNs(), window_.until_ns)) {
      vm->second.ended = true;
    }
  } else if (const auto* statistics = std::get_if<v1::Statistics>(&entry.record)) {
    const auto vm = vms_.find({stream, statistics->vm()});
    if (vm == vms_.end() || of.OnAxis(statistics->mono_ns()) > window_.until_ns) return;
    for (const v1::SourceStatistics& source : statistics->sources()) {
      const auto& columns = vm->second.columns;
      const size_t read =
          std::min<size_t>(columns.size(), static_cast<size_t>(source.vcpus_size()));
      for (size_t i = 0; i < read; ++i) {
        const v1::VcpuStatistics& vcpu = source.vcpus(static_cast<int>(i));
        const auto track = vm->second.vcpus.find(columns[i]);
        if (vcpu.has_cpu() && track != vm->second.vcpus.end()) track->second.cpu = vcpu.cpu();
      }
    }
  } else if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) {
    Track* track = FindTrack(stream, hot->vm(), hot->vcpu_index());
    const int64_t ns = of.OnAxis(hot->mono_ns());
    if (track != nullptr && Holds(ns)) {
      track->hot = std::make_unique<v1::HotAddresses>(*hot);
      track->hot_ns = ns;
    }
  }
  const auto* others = std::get_if<v1::Competitors>(&entry.record);
  const bool is_set = std::holds_alternative<v1::VcpuSet>(entry.record);
  if (is_set || (others != nullptr && Holds(of.OnAxis(others->mono_ns())))) {
    competitors_[stream].Add(entry);
  }
}

std::string Board::CompetitorsOf(const VcpuId& vcpu) const {
  const auto of_stream = competitors_.find(vcpu.vm.stream);
  if (of_stream == competitors_.end()) return "";
  const auto totals = of_stream->second.Of(vcpu.vm.vm, vcpu.index);
  return totals ? reading::SharesOf(*totals) : "";
}

const Track* Board::Find(const VcpuId& vcpu) const {
  const auto vm = vms_.find(vcpu.vm);
  if (vm == vms_.end()) return nullptr;
  const auto track = vm->second.vcpus.find(vcpu.index);
  return track == vm->second.vcpus.end() ? nullptr : &track->second;
}

}  // namespace vcpulse::top

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

template <typename Items, typename TimeOf>
void ForgetBefore(Items& items, int64_t ns, const TimeOf& time_of) {
  const auto keep =
      std::ranges::find_if(items, [&](const auto& item) { return time_of(item) > ns; });
  items.erase(items.begin(), keep);
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
  if (slots_.empty() || slot < window_.first_slot ||
      slot >= window_.first_slot + static_cast<int64_t>(window_.slots)) {
    return {};
  }
  const auto size = static_cast<int64_t>(slots_.size());
  const Slot& found = slots_[static_cast<size_t>(((slot % size) + size) % size)];
  return found.number == slot ? found.totals : metric::Totals();
}

metric::Totals Track::Sum() const {
  metric::Totals sum;
  const int64_t end = window_.first_slot + static_cast<int64_t>(window_.slots);
  for (const Slot& slot : slots_) {
    if (slot.number >= window_.first_slot && slot.number < end) sum.Add(slot.totals);
  }
  return sum;
}

metric::Totals& Track::SlotAt(int64_t number, size_t slots) {
  if (slots_.empty()) slots_.resize(slots, {.number = number - 1, .totals = {}});
  const auto size = static_cast<int64_t>(slots_.size());
  Slot& slot = slots_[static_cast<size_t>(((number % size) + size) % size)];
  if (slot.number != number) slot = {.number = number, .totals = {}};
  return slot.totals;
}

void Board::MoveTo(const Window& window) {
  window_ = window;
  const int64_t begin_ns = window.BeginNs();
  ForgetBefore(ticks_, begin_ns, [](int64_t ns) { return ns; });
  ForgetBefore(marks_, begin_ns, [](const Mark& mark) { return mark.ns; });
  for (auto& [id, vm] : vms_) {
    for (auto& [index, track] : vm.vcpus) {
      track.window_ = window;
      if (track.latest_ns_ && !Holds(*track.latest_ns_)) {
        track.latest_ns_.reset();
        track.verdict_ = {};
      }
      if (track.hot_ && !Holds(track.hot_ns_)) track.hot_.reset();
    }
  }
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
    // Of all VMs of a host the deadline is the same.
    const int64_t due_ns = of.OnAxis(tick.sample.deadline_ns);
    const auto at = std::ranges::lower_bound(ticks_, due_ns);
    if (at == ticks_.end() || *at != due_ns) {
      ticks_.insert(at, due_ns);
      cost_.covered_ns += Elapsed(begin_ns, end_ns);
    }
    ++cost_.samples;
    cost_.most_late_ns = std::max(cost_.most_late_ns, Elapsed(due_ns, end_ns));
    for (const core::VcpuSample& vcpu : tick.sample.vcpus) {
      cost_.read_ns += Elapsed(vcpu.read_begin_ns, vcpu.read_end_ns);
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
    track.slots_.assign(1, {.number = last, .totals = one});
  } else if (first >= last) {
    track.SlotAt(last, window_.slots).Add(one);
  } else {
    const auto length = static_cast<double>(end_ns - begin_ns);
    for (int64_t slot = first; slot <= last; ++slot) {
      const int64_t from = std::max(begin_ns, (slot - 1) * window_.slot_ns);
      const int64_t to = std::min(end_ns, slot * window_.slot_ns);
      track.SlotAt(slot, window_.slots).Add(one, static_cast<double>(to - from) / length);
    }
  }
  if (!track.latest_ns_ || *track.latest_ns_ <= end_ns) {
    track.latest_ns_ = end_ns;
    track.verdict_ = interval.verdict;
  }
}

void Board::Take(const VmId& id, const v1::VcpuSet& set) {
  BoardVm& vm = vms_[id];
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
    vm.vcpus[vcpu.index()].window_ = window_;
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
    if (degraded_reason_.empty()) degraded_reason_ = session->degraded_reason();
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    Take({stream, set->vm()}, *set);
  } else if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    const int64_t ns = of.OnAxis(marker->mono_ns());
    if (!Holds(ns) || marks_.size() >= kMostMarks) return;
    const auto at = std::ranges::upper_bound(marks_, ns, {}, &Mark::ns);
    marks_.insert(at, {.ns = ns, .name = marker->name()});
  } else if (const auto* gap = std::get_if<v1::Gap>(&entry.record)) {
    if (Holds(of.OnAxis(gap->mono_ns()))) {
      ++cost_.gaps;
      cost_.missing_ticks += std::min<uint64_t>(gap->last_tick() - gap->first_tick(), 1u << 30) + 1;
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
        if (vcpu.has_cpu() && track != vm->second.vcpus.end()) track->second.cpu_ = vcpu.cpu();
      }
    }
  } else if (const auto* hot = std::get_if<v1::HotAddresses>(&entry.record)) {
    Track* track = FindTrack(stream, hot->vm(), hot->vcpu_index());
    const int64_t ns = of.OnAxis(hot->mono_ns());
    if (track != nullptr && Holds(ns)) {
      track->hot_ = std::make_unique<v1::HotAddresses>(*hot);
      track->hot_ns_ = ns;
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

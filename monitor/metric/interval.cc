#include "monitor/metric/interval.h"

#include <algorithm>
#include <variant>

#include "monitor/replay/rejudge.h"

namespace vcpulse::metric {
namespace {

bool Fits(const Epoch& epoch, const core::Sample& sample) {
  const auto vcpus = static_cast<size_t>(epoch.set.vcpus_size());
  return sample.vcpus.size() == vcpus && sample.further.size() == vcpus * (epoch.groups - 1);
}

core::VcpuDelta AddPmus(std::span<const core::VcpuDelta> pmus) {
  core::VcpuDelta sum = pmus.front();
  for (const core::VcpuDelta& other : pmus.subspan(1)) sum = core::AddPmu(sum, other);
  return sum;
}

}  // namespace

std::vector<EventPlace> EventPlacesOf(const v1::VcpuSet& set) {
  std::vector<EventPlace> places;
  const auto add = [&places](const std::string& name, bool counted, size_t group, size_t slot) {
    if (std::ranges::find(places, name, &EventPlace::name) != places.end()) return;
    places.push_back({.name = name, .counted = counted, .group = group, .slot = slot});
  };
  const auto add_group = [&](const auto& events, size_t group) {
    const auto most = static_cast<int>(core::kMaxEvents);
    for (int i = 0; i < std::min(events.size(), most); ++i) {
      add(events[i], true, group, static_cast<size_t>(i));
    }
  };
  add_group(set.events(), 0);
  for (int g = 0; g < set.further_groups_size(); ++g) {
    if (static_cast<size_t>(g) + 1 >= core::kMaxGroups) break;
    add_group(set.further_groups(g).events(), static_cast<size_t>(g) + 1);
  }
  for (const v1::AbsentEvent& absent : set.absent_events()) add(absent.event(), false, 0, 0);
  return places;
}

int64_t MiddleOf(const core::VcpuSample& sample) {
  return sample.read_begin_ns + (sample.read_end_ns - sample.read_begin_ns) / 2;
}

std::optional<bool> Interval::Starved() const {
  if (!IsJudged() || (!verdict.starved && !delta.run_delay_ns)) return std::nullopt;
  return verdict.starved;
}

Interval::Counted Interval::CountOf(const EventPlace& event) const {
  Counted counted;
  if (!event.counted || event.group >= groups.size()) return counted;
  const core::VcpuDelta& group = InTurns(event) ? groups[event.group] : delta;
  const bool never_ran = group.time_enabled_ns > 0 && group.time_running_ns == 0;
  if (!never_ran) counted.count = group.counts[event.slot];
  if (group.time_enabled_ns > 0) {
    counted.share =
        static_cast<double>(group.time_running_ns) / static_cast<double>(group.time_enabled_ns);
  }
  return counted;
}

absl::Status IntervalReader::Add(const timeline::Entry& entry, Sink sink) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    return Add(Tick{.vm = tick->vm,
                    .epoch = tick->epoch,
                    .sample = tick->sample,
                    .previous = tick->previous,
                    .verdicts = tick->verdicts},
               sink);
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) return Add(*session);
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) Add(*set);
  if (const auto* read = std::get_if<v1::Statistics>(&entry.record)) Add(*read);
  return absl::OkStatus();
}

absl::Status IntervalReader::Add(const v1::Session& session) {
  if (session_) {
    if (session_->stream_id() == session.stream_id()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "a second recording begins after the first: they can only be read one at a time");
  }
  session_ = session;
  statistics_.SetNodes({session.cpu_nodes().begin(), session.cpu_nodes().end()});
  statistics_.SetCores({session.cpu_cores().begin(), session.cpu_cores().end()});
  residency_scale_ = ResidencyScale(session.residency_method(), replay::BasesOf(session));
  return absl::OkStatus();
}

void IntervalReader::Add(const v1::VcpuSet& set) {
  const std::pair key(set.vm(), set.epoch());
  if (epochs_.contains(key)) return;  // each chunk brings those that it needs
  const core::EpochClassifier::Layout layout = replay::LayoutOf(set);
  epochs_.emplace(key, Epoch{.set = set,
                             .events = EventPlacesOf(set),
                             .slots = layout.slots,
                             .core_pmus = layout.core_pmus,
                             .groups = 1 + static_cast<size_t>(set.further_groups_size())});
}

void IntervalReader::Add(const v1::Statistics& statistics) {
  const auto epoch = epochs_.find({statistics.vm(), statistics.epoch()});
  if (epoch == epochs_.end()) return;
  statistics_.Add(statistics, epoch->second.set);
}

const Epoch* IntervalReader::EpochOf(const Tick& tick) const {
  const auto found = epochs_.find({tick.vm, tick.epoch});
  return found == epochs_.end() || !Fits(found->second, tick.sample) ? nullptr : &found->second;
}

absl::Status IntervalReader::Add(const Tick& tick, Sink sink) {
  const Epoch* const epoch = EpochOf(tick);
  if (epoch == nullptr) {
    ++unusable_ticks_;
    return absl::OkStatus();
  }
  if (tick.previous == nullptr || !Fits(*epoch, *tick.previous)) return absl::OkStatus();
  const bool misses_ticks = tick.sample.tick > tick.previous->tick + 1;
  core::VcpuDelta sum;
  for (size_t i = 0; i < tick.sample.vcpus.size(); ++i) {
    const std::span<const core::VcpuDelta> groups = Deltas(tick, i);
    const auto pmus = groups.first(std::min(epoch->core_pmus, groups.size()));
    if (pmus.size() > 1) sum = AddPmus(pmus);
    const core::VcpuDelta& delta = pmus.size() > 1 ? sum : pmus.front();
    if (delta.interval_ns <= 0) continue;
    residency_scale_.Observe(pmus, epoch->slots);
    const std::optional<StatisticsDelta> statistics = statistics_.Take(tick.vm, tick.epoch, i);
    const Interval interval{
        .epoch = *epoch,
        .column = i,
        .tick = tick.sample.tick,
        .before = tick.previous->vcpus[i],
        .now = tick.sample.vcpus[i],
        .groups = groups,
        .delta = delta,
        .residency_scale = residency_scale_,
        .verdict = WithinKnown(i < tick.verdicts.size() ? tick.verdicts[i] : core::Verdict()),
        .misses_ticks = misses_ticks,
        .statistics = statistics ? &*statistics : nullptr};
    if (absl::Status status = sink(interval); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Valid until the next call.
std::span<const core::VcpuDelta> IntervalReader::Deltas(const Tick& tick, size_t column) {
  const core::VcpuSample& before = tick.previous->vcpus[column];
  const core::VcpuSample& now = tick.sample.vcpus[column];
  const size_t further = std::min(tick.sample.FurtherGroups(), core::kMaxGroups - 1);
  if (deltas_.size() < further + 1) deltas_.resize(further + 1);
  core::Subtract(before, now, deltas_[0]);
  const size_t first = column * tick.sample.FurtherGroups();
  for (size_t g = 0; g < further; ++g) {
    core::Subtract(core::WithGroup(before, tick.previous->further[first + g]),
                   core::WithGroup(now, tick.sample.further[first + g]), deltas_[g + 1]);
  }
  return std::span(deltas_).first(further + 1);
}

void ResidencyScale::Observe(std::span<const core::VcpuDelta> pmus, const core::EventSlots& slots) {
  if (method_ == v1::RESIDENCY_METHOD_TIME_ENABLED) return;
  for (size_t pmu = 0; pmu < pmus.size(); ++pmu) bases_.Observe(pmus[pmu], slots, pmu);
}

std::optional<double> ResidencyScale::Of(std::span<const core::VcpuDelta> pmus,
                                         const core::EventSlots& slots) const {
  if (method_ == v1::RESIDENCY_METHOD_TIME_ENABLED) {
    return std::min(1.0, static_cast<double>(pmus.front().time_enabled_ns) /
                             static_cast<double>(pmus.front().interval_ns));
  }
  return core::Residency(pmus, slots, bases());
}

std::optional<ShareRange> ResidencyScale::RangeOf(std::span<const core::VcpuDelta> pmus,
                                                  const core::EventSlots& slots) const {
  const std::optional<double> residency = Of(pmus, slots);
  if (!residency) return std::nullopt;
  const std::span<const core::ResidencyBasis> bases = this->bases();
  const auto at_most = core::ResidencyAtMost(pmus, slots, bases, residency);
  ShareRange range{.low = *residency, .high = at_most.value_or(*residency)};
  bool exact = pmus.size() <= bases.size();
  for (size_t i = 0; exact && i < pmus.size(); ++i) {
    exact = core::UsesRefCycles(pmus[i], slots, bases[i]);
  }
  // What its cycles are divided by may be too little.
  const bool rate_only = method_ == v1::RESIDENCY_METHOD_HIGHEST_RATE && !exact;
  if (rate_only || method_ == v1::RESIDENCY_METHOD_TIME_ENABLED) range.low = 0;
  return range;
}

}  // namespace vcpulse::metric

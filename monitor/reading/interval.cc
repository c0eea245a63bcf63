#include "monitor/reading/interval.h"

#include <algorithm>
#include <variant>

#include "monitor/core/features.h"
#include "monitor/replay/rejudge.h"

namespace vcpulse::reading {

std::span<const core::VcpuDelta> GroupDeltas::Of(const core::Sample& earlier,
                                                 const core::Sample& later, size_t vcpu) {
  const core::VcpuSample& before = earlier.vcpus[vcpu];
  const core::VcpuSample& now = later.vcpus[vcpu];
  const size_t further =
      std::min({earlier.FurtherGroups(), later.FurtherGroups(), core::kMaxGroups - 1});
  if (deltas_.size() < further + 1) deltas_.resize(further + 1);
  core::Subtract(before, now, deltas_[0]);
  for (size_t g = 0; g < further; ++g) {
    core::Subtract(core::WithGroup(before, earlier.further[vcpu * earlier.FurtherGroups() + g]),
                   core::WithGroup(now, later.further[vcpu * later.FurtherGroups() + g]),
                   deltas_[g + 1]);
  }
  return std::span(deltas_).first(further + 1);
}

core::VcpuDelta AddPmus(std::span<const core::VcpuDelta> pmus) {
  core::VcpuDelta sum = pmus.front();
  for (const core::VcpuDelta& other : pmus.subspan(1)) sum = core::AddPmu(sum, other);
  return sum;
}

void ResidencyMeter::Begin(const v1::Session& session) {
  by_time_enabled_ = session.residency_method() == v1::RESIDENCY_METHOD_TIME_ENABLED;
  estimator_ = core::ResidencyEstimator(replay::BasesOf(session));
}

std::optional<double> ResidencyMeter::Of(std::span<const core::VcpuDelta> pmus,
                                         const core::EventSlots& slots) {
  if (by_time_enabled_) {
    return std::min(1.0, static_cast<double>(pmus.front().time_enabled_ns) /
                             static_cast<double>(pmus.front().interval_ns));
  }
  for (size_t pmu = 0; pmu < pmus.size(); ++pmu) estimator_.Observe(pmus[pmu], slots, pmu);
  return core::Residency(pmus, slots, estimator_.bases());
}

core::Verdict WithinKnown(core::Verdict verdict) {
  const auto within = [](core::Band& band, core::Rule& rule) {
    if (static_cast<size_t>(band) >= core::kBands) band = core::Band::kNone;
    if (static_cast<size_t>(rule) >= core::kRules) rule = core::Rule::kNone;
  };
  within(verdict.band, verdict.rule);
  within(verdict.raw_band, verdict.raw_rule);
  return verdict;
}

int64_t MiddleOf(const core::VcpuSample& sample) {
  return sample.read_begin_ns + (sample.read_end_ns - sample.read_begin_ns) / 2;
}

std::optional<double> Interval::Ipc() const { return core::Ipc(delta, epoch.slots); }

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
    return AddTick(*tick, sink);
  }
  if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    if (session_) {
      if (session_->stream_id() == session->stream_id()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          "a second recording begins after the first: they can only be read one at a time");
    }
    session_ = *session;
    residency_.Begin(*session);
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    const std::pair key(set->vm(), set->epoch());
    if (epochs_.contains(key)) return absl::OkStatus();  // each chunk brings those that it needs
    const core::EpochClassifier::Layout layout = replay::LayoutOf(*set);
    epochs_.emplace(key, Epoch{.set = *set,
                               .events = EventPlacesOf(*set),
                               .slots = layout.slots,
                               .core_pmus = layout.core_pmus,
                               .groups = 1 + static_cast<size_t>(set->further_groups_size())});
  }
  return absl::OkStatus();
}

const Epoch* IntervalReader::Find(uint32_t vm, uint32_t epoch) const {
  const auto found = epochs_.find({vm, epoch});
  return found == epochs_.end() ? nullptr : &found->second;
}

absl::Status IntervalReader::AddTick(const timeline::TickEntry& tick, Sink sink) {
  const Epoch* const epoch = Find(tick.vm, tick.epoch);
  const auto fits = [epoch](const core::Sample& sample) {
    const auto vcpus = static_cast<size_t>(epoch->set.vcpus_size());
    return sample.vcpus.size() == vcpus && sample.further.size() == vcpus * (epoch->groups - 1);
  };
  if (epoch == nullptr || !fits(tick.sample)) {
    ++unusable_ticks_;
    return absl::OkStatus();
  }
  if (tick.previous == nullptr || !fits(*tick.previous)) return absl::OkStatus();
  core::VcpuDelta sum;
  for (size_t i = 0; i < tick.sample.vcpus.size(); ++i) {
    const std::span<const core::VcpuDelta> groups = deltas_.Of(*tick.previous, tick.sample, i);
    const auto pmus = groups.first(std::min(epoch->core_pmus, groups.size()));
    if (pmus.size() > 1) sum = AddPmus(pmus);
    const core::VcpuDelta& delta = pmus.size() > 1 ? sum : pmus.front();
    if (delta.interval_ns <= 0) continue;
    const Interval interval{
        .epoch = *epoch,
        .column = i,
        .tick = tick.sample.tick,
        .before = tick.previous->vcpus[i],
        .now = tick.sample.vcpus[i],
        .groups = groups,
        .delta = delta,
        .residency = residency_.Of(pmus, epoch->slots),
        .verdict = WithinKnown(i < tick.verdicts.size() ? tick.verdicts[i] : core::Verdict())};
    if (absl::Status status = sink(interval); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace vcpulse::reading

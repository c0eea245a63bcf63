#include "monitor/replay/record_copy.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace vcpulse::replay {
namespace {

bool Fits(const core::Sample& sample, const v1::VcpuSet& set) {
  const auto vcpus = static_cast<size_t>(set.vcpus_size());
  return sample.vcpus.size() == vcpus &&
         sample.further.size() == vcpus * static_cast<size_t>(set.further_groups_size());
}

}  // namespace

void RecordCopy::Take(const timeline::Entry& entry) {
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    TakeTick(*tick);
    return;
  }
  if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    // Each chunk brings those that it needs.
    if (!epochs_.contains({set->vm(), set->epoch()})) WriteSet(*set);
    return;
  }
  const bool is_session = std::holds_alternative<v1::Session>(entry.record);
  if (is_session ? has_session_ : entry.sequence == 0) return;
  has_session_ = has_session_ || is_session;
  writer_.Add(timeline::RecordOf(entry), timeline::InstantOf(entry).value_or(0));
}

void RecordCopy::WriteSet(const v1::VcpuSet& set) {
  if (!timeline::IsWritable(set)) return;
  Epoch& epoch = epochs_[{set.vm(), set.epoch()}];
  epoch = {.set = set};
  v1::TimelineRecord record;
  *record.mutable_vcpu_set() = set;
  writer_.Add(std::move(record), set.mono_ns());
}

void RecordCopy::TakeTick(const timeline::TickEntry& tick) {
  const auto found = epochs_.find({tick.vm, tick.epoch});
  if (found == epochs_.end() || !Fits(tick.sample, found->second.set)) {
    ++unusable_ticks_;
    return;
  }
  Epoch& epoch = found->second;
  const core::Sample* previous = tick.previous;
  const bool follows =
      epoch.has_sample && previous != nullptr && previous->tick == epoch.latest_tick;
  if (epoch.has_sample && !follows) WriteSet(v1::VcpuSet(epoch.set));
  if (previous != nullptr && !follows && Fits(*previous, epoch.set)) {
    writer_.AddTick(tick.vm, tick.epoch, *previous,
                    std::vector<core::Verdict>(previous->vcpus.size()));
  }
  std::vector<core::Verdict> verdicts = tick.verdicts;
  verdicts.resize(tick.sample.vcpus.size());
  writer_.AddTick(tick.vm, tick.epoch, tick.sample, verdicts);
  epoch.has_sample = true;
  epoch.latest_tick = tick.sample.tick;
}

}  // namespace vcpulse::replay

#include "monitor/library/record_rows.h"

#include <algorithm>

#include "monitor/core/delta.h"
#include "monitor/core/features.h"
#include "monitor/reading/labels.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/utf8_texts.h"

namespace vcpulse::library {
namespace {

template <typename T>
const T* OrNull(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

vcpulse_record Record(vcpulse_kind kind, int64_t mono_ns) {
  vcpulse_record record{};
  record.size = sizeof(record);
  record.kind = kind;
  record.mono_ns = mono_ns;
  return record;
}

}  // namespace

bool RecordRows::Add(const v1::Session& session) {
  if (!has_session_) residency_.Begin(session);
  has_session_ = true;
  return true;
}

void RecordRows::Learn(uint32_t vm, const v1::VmInstance& instance) {
  if (vm == 0 || vms_.contains(vm)) return;
  Vm& known = vms_[vm];
  known.name = instance.name();
  known.pid = instance.pid();
  timeline::MakeUtf8(&known.name);  // a reader's are; a live VM's name may be any bytes
}

bool RecordRows::Add(const v1::VcpuSet& set) {
  Learn(set.vm(), set.instance());
  const std::pair<uint32_t, uint32_t> key(set.vm(), set.epoch());
  if (!epochs_.contains(key)) epochs_.emplace(key, MakeEpoch(set));
  return true;
}

bool RecordRows::Add(const v1::Marker& marker) {
  vcpulse_record record = Record(VCPULSE_MARKER, marker.mono_ns());
  record.text = marker.name().c_str();
  return sink_(record);
}

bool RecordRows::Add(const v1::Gap& gap) {
  vcpulse_record record = Record(VCPULSE_GAP, gap.mono_ns());
  Name(gap.vm(), record);
  record.tick = gap.first_tick();
  record.last_tick = gap.last_tick();
  const std::string reason(reading::GapReasonName(gap.reason()));
  record.text = reason.c_str();
  return sink_(record);
}

bool RecordRows::Add(const v1::LifeCycle& life_cycle) {
  Learn(life_cycle.vm(), life_cycle.instance());
  vcpulse_record record = Record(VCPULSE_LIFE_CYCLE, life_cycle.mono_ns());
  Name(life_cycle.vm(), record);
  // A VM that was never recorded has no number, but a name.
  std::string name = life_cycle.instance().name();
  timeline::MakeUtf8(&name);
  if (record.vm == nullptr && !name.empty()) {
    record.vm = name.c_str();
    record.vm_pid = life_cycle.instance().pid();
  }
  const std::string kind(reading::LifeCycleName(life_cycle.kind()));
  record.text = kind.c_str();
  std::string detail = life_cycle.detail();
  timeline::MakeUtf8(&detail);
  record.detail = detail.empty() ? nullptr : detail.c_str();
  return sink_(record);
}

void RecordRows::Name(uint32_t vm, vcpulse_record& record) const {
  const auto known = vms_.find(vm);
  if (known == vms_.end()) return;
  record.vm = known->second.name.c_str();
  record.vm_pid = known->second.pid;
}

RecordRows::Epoch RecordRows::MakeEpoch(const v1::VcpuSet& set) {
  const core::EpochClassifier::Layout layout = replay::LayoutOf(set);
  Epoch epoch{.vcpus = {},
              .slots = layout.slots,
              .core_pmus = layout.core_pmus,
              .groups = 1 + static_cast<size_t>(set.further_groups_size()),
              .events = reading::EventPlacesOf(set),
              .names = {}};
  for (const v1::Vcpu& vcpu : set.vcpus()) epoch.vcpus.push_back(vcpu.index());
  for (const reading::EventPlace& event : epoch.events) epoch.names.push_back(event.name.c_str());
  return epoch;
}

bool RecordRows::AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                         const core::Sample* previous, std::span<const core::Verdict> verdicts) {
  const auto known = epochs_.find({vm, epoch});
  if (known == epochs_.end() || previous == nullptr) return true;
  const auto fits = [&](const core::Sample& one) {
    const size_t vcpus = known->second.vcpus.size();
    return one.vcpus.size() == vcpus && one.further.size() == vcpus * (known->second.groups - 1);
  };
  if (!fits(sample) || !fits(*previous)) return true;
  for (size_t i = 0; i < known->second.vcpus.size(); ++i) {
    const core::VcpuSample& now = sample.vcpus[i];
    vcpulse_record record =
        Record(VCPULSE_TICK, now.read_begin_ns + (now.read_end_ns - now.read_begin_ns) / 2);
    Name(vm, record);
    record.vcpu = known->second.vcpus[i];
    record.tick = sample.tick;
    const core::Verdict verdict =
        reading::WithinKnown(i < verdicts.size() ? verdicts[i] : core::Verdict());
    if (!AddRow(sample, *previous, known->second, i, verdict, record)) return false;
  }
  return true;
}

bool RecordRows::AddRow(const core::Sample& sample, const core::Sample& previous,
                        const Epoch& epoch, size_t vcpu, const core::Verdict& verdict,
                        vcpulse_record& record) {
  const std::span<const core::VcpuDelta> groups = deltas_.Of(previous, sample, vcpu);
  const std::span<const core::VcpuDelta> pmus =
      groups.first(std::min(epoch.core_pmus, groups.size()));
  const core::VcpuDelta delta = reading::AddPmus(pmus);
  if (delta.interval_ns <= 0) return true;
  record.interval_ns = delta.interval_ns;

  const bool given = verdict.band != core::Band::kNone;
  record.band = static_cast<int32_t>(verdict.band);
  const std::string rule(given ? core::ToString(verdict.rule) : "");
  record.rule = given ? rule.c_str() : nullptr;
  const int32_t starved = verdict.starved ? 1 : 0;
  if (given && (delta.run_delay_ns || verdict.starved)) record.starved = &starved;
  const uint32_t confidence = verdict.confidence_pct;
  if (confidence > 0) record.confidence_pct = &confidence;

  const std::optional<double> residency = residency_.Of(pmus, epoch.slots);
  record.residency = OrNull(residency);
  const std::optional<double> ipc = core::Ipc(delta, epoch.slots);
  record.ipc = OrNull(ipc);
  record.run_ns = OrNull(delta.run_ns);
  record.run_delay_ns = OrNull(delta.run_delay_ns);
  Count(epoch, groups, delta);
  record.event_count = epoch.events.size();
  record.event_names = epoch.names.data();
  record.event_counts = count_pointers_.data();
  record.event_shares = shares_.data();
  return sink_(record);
}

void RecordRows::Count(const Epoch& epoch, std::span<const core::VcpuDelta> groups,
                       const core::VcpuDelta& main) {
  counts_.assign(epoch.events.size(), 0);
  count_pointers_.assign(epoch.events.size(), nullptr);
  shares_.assign(epoch.events.size(), 0.0);
  for (size_t i = 0; i < epoch.events.size(); ++i) {
    const reading::EventPlace& event = epoch.events[i];
    if (!event.counted || event.group >= groups.size()) continue;
    // Groups beyond the core PMUs take turns: each has times of its own.
    const core::VcpuDelta& group = event.group >= epoch.core_pmus ? groups[event.group] : main;
    if (group.time_enabled_ns > 0 && group.time_running_ns == 0) continue;  // never ran
    counts_[i] = group.counts[event.slot];
    count_pointers_[i] = &counts_[i];
    shares_[i] = group.time_enabled_ns == 0 ? 1.0  // off the CPU throughout: a 0 that is exact
                                            : static_cast<double>(group.time_running_ns) /
                                                  static_cast<double>(group.time_enabled_ns);
  }
}

}  // namespace vcpulse::library

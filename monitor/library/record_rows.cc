#include "monitor/library/record_rows.h"

#include "kvm/base/text.h"
#include "monitor/metric/metric.h"
#include "monitor/reading/labels.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::library {
namespace {

// A value of `record` that may not have been measured.
template <typename T>
void Put(const std::optional<T>& value, vcpulse_has bit, T& field, vcpulse_record& record) {
  if (!value) return;
  field = *value;
  record.has |= bit;
}

vcpulse_record Record(vcpulse_kind kind, int64_t mono_ns) {
  vcpulse_record record{};
  record.size = sizeof(record);
  record.kind = kind;
  record.mono_ns = mono_ns;
  return record;
}

// Of a record that is no tick; those that the C API does not tell are taken as they are.
bool AddTo(RecordRows& rows, const v1::TimelineRecord& record) {
  switch (record.record_case()) {
    case v1::TimelineRecord::kSession:
      return rows.Add(record.session());
    case v1::TimelineRecord::kVcpuSet:
      return rows.Add(record.vcpu_set());
    case v1::TimelineRecord::kMarker:
      return rows.Add(record.marker());
    case v1::TimelineRecord::kGap:
      return rows.Add(record.gap());
    case v1::TimelineRecord::kLifeCycle:
      return rows.Add(record.life_cycle());
    case v1::TimelineRecord::kStatistics:
      return rows.Add(record.statistics());
    default:
      return true;
  }
}

}  // namespace

bool RecordRows::Add(const v1::Session& session) {
  intervals_.Add(session).IgnoreError();  // another stream's: vcpulse_timeline_open refuses those
  return true;
}

bool RecordRows::Add(const v1::Statistics& statistics) {
  intervals_.Add(statistics);
  return true;
}

void RecordRows::Learn(uint32_t vm, const v1::VmInstance& instance) {
  if (vm == 0 || vms_.contains(vm)) return;
  Vm& known = vms_[vm];
  known.name = instance.name();
  known.pid = instance.pid();
  MakeUtf8(&known.name);  // a reader's are; a live VM's name may be any bytes
}

bool RecordRows::Add(const v1::VcpuSet& set) {
  Learn(set.vm(), set.instance());
  intervals_.Add(set);
  return true;
}

bool RecordRows::Add(const v1::Marker& marker) {
  vcpulse_record record = Record(VCPULSE_KIND_MARKER, marker.mono_ns());
  record.text = marker.name().c_str();
  return sink_(record);
}

bool RecordRows::Add(const v1::Gap& gap) {
  vcpulse_record record = Record(VCPULSE_KIND_GAP, gap.mono_ns());
  Name(gap.vm(), record);
  record.tick = gap.first_tick();
  record.last_tick = gap.last_tick();
  const std::string reason(reading::GapReasonName(gap.reason()));
  record.text = reason.c_str();
  return sink_(record);
}

bool RecordRows::Add(const v1::LifeCycle& life_cycle) {
  Learn(life_cycle.vm(), life_cycle.instance());
  vcpulse_record record = Record(VCPULSE_KIND_LIFE_CYCLE, life_cycle.mono_ns());
  Name(life_cycle.vm(), record);
  // A VM that was never recorded has no number, but a name.
  std::string name = life_cycle.instance().name();
  MakeUtf8(&name);
  if (record.vm == nullptr && !name.empty()) {
    record.vm = name.c_str();
    record.vm_pid = life_cycle.instance().pid();
  }
  const std::string kind(reading::LifeCycleName(life_cycle.kind()));
  record.text = kind.c_str();
  std::string detail = life_cycle.detail();
  MakeUtf8(&detail);
  record.detail = detail.empty() ? nullptr : detail.c_str();
  return sink_(record);
}

void RecordRows::Name(uint32_t vm, vcpulse_record& record) const {
  const auto known = vms_.find(vm);
  if (known == vms_.end()) return;
  record.vm = known->second.name.c_str();
  record.vm_pid = known->second.pid;
}

bool RecordRows::AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                         const core::Sample* previous, std::span<const core::Verdict> verdicts) {
  const metric::Tick tick{
      .vm = vm, .epoch = epoch, .sample = sample, .previous = previous, .verdicts = verdicts};
  return intervals_
      .Add(tick,
           [this](const metric::Interval& interval) {
             return AddRow(interval) ? absl::OkStatus() : absl::CancelledError("enough");
           })
      .ok();
}

void RecordRows::EndEpoch(uint32_t vm, uint32_t epoch) {
  intervals_.EndEpoch(vm, epoch);
  event_names_.erase({vm, epoch});
}

bool RecordRows::AddRow(const metric::Interval& interval) {
  vcpulse_record record = Record(VCPULSE_KIND_TICK, interval.EndNs());
  Name(interval.Vm(), record);
  record.vcpu = interval.Vcpu().index();
  record.tick = interval.tick;
  record.interval_ns = interval.delta.interval_ns;

  const core::Verdict& verdict = interval.verdict;
  record.band = static_cast<int32_t>(verdict.band);
  const std::string rule(interval.IsJudged() ? core::ToString(verdict.rule) : "");
  record.rule = interval.IsJudged() ? rule.c_str() : nullptr;
  if (const std::optional<bool> starved = interval.Starved()) {
    record.has |= VCPULSE_HAS_STARVED;
    record.starved = *starved ? 1 : 0;
  }
  if (verdict.confidence_pct > 0) {
    record.has |= VCPULSE_HAS_CONFIDENCE;
    record.confidence_pct = verdict.confidence_pct;
  }
  Put(metric::ValueOf(metric::Metric::kResidency, interval), VCPULSE_HAS_RESIDENCY,
      record.residency, record);
  Put(metric::ValueOf(metric::Metric::kIpc, interval), VCPULSE_HAS_IPC, record.ipc, record);
  Put(interval.delta.run_ns, VCPULSE_HAS_RUN, record.run_ns, record);
  Put(interval.delta.run_delay_ns, VCPULSE_HAS_RUN_DELAY, record.run_delay_ns, record);
  Count(interval);
  record.event_count = interval.epoch.events.size();
  record.event_counts = counts_.data();
  record.event_shares = shares_.data();
  std::vector<const char*>& names = event_names_[{interval.Vm(), interval.epoch.set.epoch()}];
  if (names.empty()) {
    for (const metric::EventPlace& event : interval.epoch.events) {
      names.push_back(event.name.c_str());
    }
  }
  record.event_names = names.data();
  return sink_(record);
}

void RecordRows::Count(const metric::Interval& interval) {
  const std::vector<metric::EventPlace>& events = interval.epoch.events;
  counts_.assign(events.size(), 0);
  shares_.assign(events.size(), 0.0);
  for (size_t i = 0; i < events.size(); ++i) {
    const metric::Interval::Counted counted = interval.CountOf(events[i]);
    if (!counted.count) continue;
    counts_[i] = *counted.count;
    shares_[i] = counted.share.value_or(1);  // off the CPU throughout: a 0 that is exact
  }
}

ObservingWriter::ObservingWriter(std::unique_ptr<timeline::RecordWriter> next,
                                 std::function<void()> on_signal, RecordRows::Sink rows)
    : next_(std::move(next)), on_signal_(std::move(on_signal)) {
  if (rows) rows_.emplace(std::move(rows));
}

void ObservingWriter::AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                              std::span<const core::Verdict> verdicts) {
  next_->AddTick(vm, epoch, sample, verdicts);
  on_signal_();
  if (!rows_) return;
  const auto [before, first] = previous_.try_emplace({vm, epoch});
  const core::Sample* previous = first ? nullptr : &before->second;
  if (rows_->AddTick(vm, epoch, sample, previous, verdicts)) {
    before->second = sample;
  } else {
    StopWatching();
  }
}

void ObservingWriter::Add(v1::TimelineRecord record, int64_t mono_ns) {
  if (rows_ && !AddTo(*rows_, record)) StopWatching();
  const bool is_gap = record.has_gap();
  next_->Add(std::move(record), mono_ns);
  if (is_gap) on_signal_();
}

void ObservingWriter::EndEpoch(uint32_t vm, uint32_t epoch) {
  next_->EndEpoch(vm, epoch);
  previous_.erase({vm, epoch});
  if (rows_) rows_->EndEpoch(vm, epoch);
}

void ObservingWriter::StopWatching() {
  rows_.reset();
  previous_.clear();
}

}  // namespace vcpulse::library

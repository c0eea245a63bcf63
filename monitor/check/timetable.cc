#include "monitor/check/timetable.h"

#include <algorithm>
#include <set>
#include <variant>

#include "absl/strings/str_cat.h"
#include "monitor/metric/interval.h"
#include "monitor/reading/labels.h"

namespace vcpulse::check {
namespace {

std::string ReasonOf(const v1::UnopenedVcpu& vcpu) {
  if (vcpu.error() == 0) return vcpu.reason();
  return absl::StrCat(reading::ErrnoText(vcpu.error()), vcpu.reason().empty() ? "" : "; ",
                      vcpu.reason());
}

Epoch MakeEpoch(const v1::VcpuSet& set) {
  Epoch epoch;
  epoch.from_ns = WithinReason(set.mono_ns());
  for (const v1::Vcpu& vcpu : set.vcpus()) epoch.vcpus.push_back(vcpu.index());
  for (const v1::UnopenedVcpu& vcpu : set.unopened_vcpus()) {
    epoch.unopened.push_back({.index = vcpu.index(), .reason = ReasonOf(vcpu)});
  }
  epoch.degraded = set.event_set() == "degraded";
  return epoch;
}

bool HasVcpu(const Epoch& epoch, uint32_t vcpu) {
  return std::ranges::find(epoch.vcpus, vcpu) != epoch.vcpus.end() ||
         std::ranges::find(epoch.unopened, vcpu, &Epoch::Unopened::index) != epoch.unopened.end();
}

// Whether a VM that was skipped ran guest code that was to be recorded.
bool WasSelected(const v1::LifeCycle& skipped) {
  return skipped.skip_reason() != v1::LifeCycle::SKIP_REASON_NO_KVM &&
         skipped.skip_reason() != v1::LifeCycle::SKIP_REASON_NO_VCPU;
}

std::string ReasonOf(const v1::LifeCycle& skipped) {
  const bool known = skipped.skip_reason() != v1::LifeCycle::SKIP_REASON_UNSPECIFIED;
  return absl::StrCat(skipped.detail(), known ? "" : " (not known whether it ran KVM)");
}

}  // namespace

absl::Status Timetable::Add(const timeline::Entry& entry) {
  // Context (sequence 0) repeats what lies elsewhere: a chunk's clock is read when it is closed.
  if (const auto instant = timeline::InstantOf(entry); instant && entry.sequence != 0) {
    SeeInstant(*instant);
  }
  if (const auto* tick = std::get_if<timeline::TickEntry>(&entry.record)) {
    // It woke before it read: the last reads are what the recording ends with.
    for (const core::VcpuSample& vcpu : tick->sample.vcpus) {
      const int64_t read_ns = WithinReason(metric::MiddleOf(vcpu));
      end_ns_ = std::max(end_ns_.value_or(read_ns), read_ns);
    }
  } else if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
    return AddSession(*session);
  } else if (const auto* set = std::get_if<v1::VcpuSet>(&entry.record)) {
    AddVcpuSet(*set);
  } else if (const auto* marker = std::get_if<v1::Marker>(&entry.record)) {
    AddMarker(*marker);
  } else if (const auto* change = std::get_if<v1::LifeCycle>(&entry.record)) {
    AddLifeCycle(*change);
  } else if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) {
    if (!clock_) clock_ = *clock;
  }
  return absl::OkStatus();
}

absl::Status Timetable::AddSession(const v1::Session& session) {
  if (session_ && session_->stream_id() != session.stream_id()) {
    return absl::InvalidArgumentError(
        "a second recording begins after the first: they can only be read one at a time");
  }
  session_ = session;
  return absl::OkStatus();
}

void Timetable::AddVcpuSet(const v1::VcpuSet& set) {
  Vm& vm = vms_[set.vm()];
  vm.instance = set.instance();
  if (vm.epochs.contains(set.epoch())) return;
  Epoch epoch = MakeEpoch(set);
  EndCurrent(set.vm(), epoch.from_ns);
  EndSkipped(set.instance(), epoch.from_ns);
  vm.ended_ns.reset();
  current_[set.vm()] = &vm.epochs.emplace(set.epoch(), std::move(epoch))->second;
}

void Timetable::AddMarker(const v1::Marker& marker) {
  int64_t mono_ns = WithinReason(marker.mono_ns());
  if (!marks_.empty()) mono_ns = std::max(mono_ns, marks_.back().mono_ns);
  marks_.push_back({.name = marker.name(), .mono_ns = mono_ns});
}

void Timetable::AddLifeCycle(const v1::LifeCycle& change) {
  const int64_t mono_ns = WithinReason(change.mono_ns());
  if (change.kind() == v1::LifeCycle::KIND_VM_SKIPPED && WasSelected(change)) {
    EndSkipped(change.instance(), mono_ns);
    skipped_now_[{change.instance().pid(), change.instance().start_time_ticks()}] = skipped_.size();
    skipped_.push_back({.instance = change.instance(),
                        .reason = ReasonOf(change),
                        .from_ns = mono_ns,
                        .to_ns = {}});
  }
  if (change.kind() == v1::LifeCycle::KIND_VM_ENDED) {
    EndCurrent(change.vm(), mono_ns);
    EndSkipped(change.instance(), mono_ns);
    if (const auto vm = vms_.find(change.vm()); vm != vms_.end()) vm->second.ended_ns = mono_ns;
  }
  if (change.kind() == v1::LifeCycle::KIND_RECORDING_RESUMED && paused_ns_) {
    pauses_.push_back({.from_ns = *paused_ns_, .to_ns = mono_ns});
    paused_ns_.reset();
    AwaitEpochs(mono_ns);
  }
  if (change.kind() != v1::LifeCycle::KIND_RECORDING_PAUSED) return;
  if (!paused_ns_) paused_ns_ = mono_ns;
  while (!current_.empty()) EndCurrent(current_.begin()->first, mono_ns);
}

void Timetable::EndCurrent(uint32_t vm, int64_t mono_ns) {
  const auto current = current_.find(vm);
  if (current == current_.end()) return;
  current->second->to_ns = mono_ns;
  current_.erase(current);
}

void Timetable::EndSkipped(const v1::VmInstance& instance, int64_t mono_ns) {
  const auto found = skipped_now_.find({instance.pid(), instance.start_time_ticks()});
  if (found == skipped_now_.end()) return;
  skipped_[found->second].to_ns = mono_ns;
  skipped_now_.erase(found);
}

// After a pause: a VM whose next epoch does not come soon is there and not measured.
void Timetable::AwaitEpochs(int64_t mono_ns) {
  for (auto& [number, vm] : vms_) {
    if (vm.ended_ns || vm.epochs.empty() || current_.contains(number)) continue;
    Epoch awaited = vm.epochs.rbegin()->second;
    for (const uint32_t index : awaited.vcpus) {
      awaited.unopened.push_back(
          {.index = index, .reason = "not opened again since the recording's pause"});
    }
    awaited.vcpus.clear();
    awaited.from_ns = mono_ns + 2 * Interval_ns();  // opening takes a while
    awaited.to_ns.reset();
    current_[number] = &vm.epochs.emplace(vm.epochs.rbegin()->first, std::move(awaited))->second;
  }
}

void Timetable::SeeInstant(int64_t mono_ns) {
  mono_ns = WithinReason(mono_ns);
  start_ns_ = std::min(start_ns_.value_or(mono_ns), mono_ns);
  end_ns_ = std::max(end_ns_.value_or(mono_ns), mono_ns);
}

const Epoch* Timetable::FindEpoch(uint32_t vm, uint32_t epoch) const {
  const auto known = vms_.find(vm);
  if (known == vms_.end()) return nullptr;
  const auto found = known->second.epochs.lower_bound(epoch);
  const bool exists = found != known->second.epochs.end() && found->first == epoch;
  return exists ? &found->second : nullptr;
}

int64_t Timetable::Interval_ns() const {
  constexpr uint64_t kLongest_ns = uint64_t{1} << 60;
  return session_ ? static_cast<int64_t>(std::min(session_->interval_ns(), kLongest_ns)) : 0;
}

std::optional<int64_t> Timetable::StartRealtimeNs() const {
  // What was imported has no wall clock.
  if (!start_ns_ || !clock_ || clock_->realtime_ns() == 0) return std::nullopt;
  const int64_t offset_ns = *start_ns_ - WithinReason(clock_->mono_ns());
  // A damaged one wraps rather than overflows.
  return static_cast<int64_t>(static_cast<uint64_t>(clock_->realtime_ns()) +
                              static_cast<uint64_t>(offset_ns));
}

std::vector<std::string> Timetable::Phases() const {
  std::vector<std::string> names;
  std::set<std::string_view> known;
  for (const Mark& mark : marks_) {
    if (known.insert(mark.name).second) names.push_back(mark.name);
  }
  return names;
}

std::vector<TimeRange> Timetable::Spans(const std::optional<std::string>& phase,
                                        int64_t skip_ns) const {
  std::vector<TimeRange> spans;
  const TimeRange recording = Recording();
  for (size_t i = 0; phase && i < marks_.size(); ++i) {
    if (marks_[i].name != *phase) continue;
    const bool is_last = i + 1 == marks_.size();
    spans.push_back({marks_[i].mono_ns, is_last ? recording.to_ns : marks_[i + 1].mono_ns});
  }
  if (!phase) spans.push_back(recording);
  for (TimeRange& span : spans) {
    span.from_ns = std::min(span.to_ns, span.from_ns + WithinReason(skip_ns));
  }
  return spans;
}

std::vector<TimeRange> Timetable::VcpuWindows(uint32_t vm, uint32_t vcpu) const {
  std::vector<TimeRange> windows;
  for (const auto& [number, epoch] : vms_.at(vm).epochs) {
    if (HasVcpu(epoch, vcpu)) windows.push_back(WindowOf(epoch));
  }
  return Joined(std::move(windows));
}

std::vector<TimeRange> Timetable::SampledWindows(uint32_t vm) const {
  std::vector<TimeRange> windows;
  for (const auto& [number, epoch] : vms_.at(vm).epochs) {
    if (!epoch.vcpus.empty() || !epoch.unopened.empty()) windows.push_back(WindowOf(epoch));
  }
  return Joined(std::move(windows));
}

std::optional<TimeRange> Timetable::GoneWithin(uint32_t vm,
                                               const std::vector<TimeRange>& spans) const {
  const std::optional<int64_t> ended_ns = vms_.at(vm).ended_ns;
  if (!ended_ns) return std::nullopt;
  const auto span = std::ranges::find_if(spans, [&ended_ns](const TimeRange& s) {
    return s.from_ns < *ended_ns && *ended_ns < s.to_ns;
  });
  if (span == spans.end()) return std::nullopt;
  return TimeRange{.from_ns = *ended_ns, .to_ns = span->to_ns};
}

int64_t Timetable::LastVcpuUntil(uint32_t vm) const {
  int64_t until_ns = Recording().from_ns;
  for (const auto& [number, epoch] : vms_.at(vm).epochs) {
    if (epoch.vcpus.empty() && epoch.unopened.empty()) continue;
    until_ns = std::max(until_ns, WindowOf(epoch).to_ns);
  }
  return until_ns;
}

std::vector<TimeRange> Timetable::Pauses() const {
  std::vector<TimeRange> pauses = pauses_;
  if (paused_ns_) pauses.push_back({.from_ns = *paused_ns_, .to_ns = Recording().to_ns});
  return Joined(std::move(pauses));
}

bool Timetable::LastsToTheEnd(const std::string& phase) const {
  return !marks_.empty() && marks_.back().name == phase;
}

int64_t WithinReason(int64_t instant_ns) {
  constexpr int64_t kFurthest_ns = (int64_t{1} << 62) - 1;
  return std::clamp(instant_ns, -kFurthest_ns, kFurthest_ns);
}

std::vector<TimeRange> Joined(std::vector<TimeRange> stretches) {
  std::ranges::sort(stretches, {}, &TimeRange::from_ns);
  std::vector<TimeRange> joined;
  for (const TimeRange& stretch : stretches) {
    if (stretch.Length() <= 0) continue;
    if (!joined.empty() && stretch.from_ns <= joined.back().to_ns) {
      joined.back().to_ns = std::max(joined.back().to_ns, stretch.to_ns);
    } else {
      joined.push_back(stretch);
    }
  }
  return joined;
}

std::vector<TimeRange> Common(std::span<const TimeRange> spans,
                              std::span<const TimeRange> windows) {
  std::vector<TimeRange> common;
  for (const TimeRange& span : spans) {
    if (span.Length() <= 0) continue;
    // The first window that does not end before the span begins.
    auto window = std::ranges::upper_bound(windows, span.from_ns, {}, &TimeRange::to_ns);
    for (; window != windows.end() && window->from_ns < span.to_ns; ++window) {
      common.push_back({.from_ns = std::max(span.from_ns, window->from_ns),
                        .to_ns = std::min(span.to_ns, window->to_ns)});
    }
  }
  return common;
}

int64_t TotalLength(std::span<const TimeRange> stretches) {
  int64_t total_ns = 0;
  for (const TimeRange& stretch : stretches) total_ns += stretch.Length();
  return total_ns;
}

}  // namespace vcpulse::check

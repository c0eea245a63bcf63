#include "monitor/recorder/recording.h"

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "kvm/discovery/pause.h"
#include "monitor/core/event_slots.h"
#include "monitor/recorder/session_record.h"
#include "monitor/recorder/step_down.h"

namespace vcpulse::recorder {
namespace {

// A gap that lasts is one record per so much time.
constexpr absl::Duration kLongestGapRecord = absl::Seconds(1);

// VMs that were left out, of which it is remembered that it was said.
constexpr size_t kMostSkipped = 4096;

std::string Label(const kvm::Vm& vm) { return absl::StrCat(vm.name, " (PID ", vm.pid, ")"); }

// What changed between two vCPU sets of a VM, for people.
std::string DescribeChange(const kvm::Vm& before, const kvm::Vm& after) {
  std::string text;
  const auto add = [&text](const char* what, const kvm::Vcpu& vcpu) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", what, " vCPU ", vcpu.index, " (TID ", vcpu.tid,
                    ")");
  };
  const auto missing_from = [](const kvm::Vm& vm, const kvm::Vcpu& vcpu) {
    return std::ranges::none_of(vm.vcpus, [&](const kvm::Vcpu& other) {
      return other.tid == vcpu.tid && other.start_time_ticks == vcpu.start_time_ticks;
    });
  };
  for (const kvm::Vcpu& vcpu : before.vcpus) {
    if (missing_from(after, vcpu)) add("lost", vcpu);
  }
  for (const kvm::Vcpu& vcpu : after.vcpus) {
    if (missing_from(before, vcpu)) add("found", vcpu);
  }
  if (after.vcpus.empty()) text += "; none is left";
  return text;
}

bool SameThreads(const kvm::Vm& a, const kvm::Vm& b) {
  return std::ranges::equal(a.vcpus, b.vcpus, [](const kvm::Vcpu& x, const kvm::Vcpu& y) {
    return x.index == y.index && x.tid == y.tid && x.start_time_ticks == y.start_time_ticks;
  });
}

}  // namespace

InstanceKey KeyOf(const kvm::Vm& vm) {
  return {.pid = vm.pid, .start_time_ticks = vm.start_time_ticks};
}

// A vCPU that may be called HALTED must not be waiting for a CPU.
sampler::ReadPolicy PolicyFor(const Recording::Options& options) {
  sampler::ReadPolicy policy;
  policy.state_below = std::max(policy.state_below, options.profile.presence.halted_leave);
  policy.oldest_ns = std::max(policy.oldest_ns, absl::ToInt64Nanoseconds(options.interval) / 2);
  return policy;
}

Recording::Recording(const Options& options, kvm::PerfEvents& perf, timeline::RecordWriter& writer)
    : options_(options),
      perf_(perf),
      writer_(writer),
      sampler_({.now_ns = options.now_ns, .policy = PolicyFor(options)}),
      residency_(options.residency) {
  if (options_.hotspots.Any()) {
    const OpenAddresses open = [this](const kvm::Vm& vm) {
      return kvm::AddressSampler::Open(perf_, vm,
                                       {.root = options_.root,
                                        .source = options_.hotspots_source,
                                        .qmp_too = false,
                                        .force_mediated_vpmu = options_.open.force_mediated_vpmu});
    };
    windows_.emplace_back(
        options_.hotspots,
        HotAddressWindows(options_.open_hotspots ? options_.open_hotspots : open,
                          options_.guest_code
                              ? PatientCodeReader(kvm::ReadGuestCode, options_.now_ns)
                              : ReadCode()),
        options_.now_ns);
  }
  if (options_.competitors) {
    const OpenCompetitors open = [this](const kvm::Vm& vm) {
      return kvm::CompetitorSampler::Open(perf_, vm, options_.root);
    };
    windows_.emplace_back(
        Triggers{.starved = true},
        CompetitorWindows(options_.open_competitors ? options_.open_competitors : open),
        options_.now_ns);
  }
}

std::string Counted(uint64_t ticks, uint64_t vcpu_samples, uint64_t gaps) {
  return absl::StrCat(Plural(ticks, "tick"), ", ", Plural(vcpu_samples, "vCPU sample"), ", ",
                      Plural(gaps, "gap"));
}

absl::Status Recording::Track(const kvm::Vm& vm) {
  const InstanceKey key = KeyOf(vm);
  const auto known = vms_.find(key);
  return known == vms_.end() ? TrackNew(key, vm) : TrackKnown(key, known->second, vm);
}

absl::Status Recording::TrackNew(const InstanceKey& key, const kvm::Vm& vm) {
  if (std::max(epochs_.size(), vms_.size()) >= sampler::kMaxEpochs) {
    return absl::ResourceExhaustedError(absl::StrCat("more than ", sampler::kMaxEpochs,
                                                     " VMs at once: ", Label(vm), " is left out"));
  }
  RecordedVm recorded{.openings = Openings(perf_, options_.root, options_.open)};
  if (!paused_) {
    if (absl::Status status = BeginEpoch(key, recorded, vm); !status.ok()) return status;
  } else if (vm.vcpus.empty()) {
    return absl::NotFoundError(absl::StrCat(Label(vm), ": no vCPU thread"));
  }
  recorded.vm = vm;
  vms_.emplace(key, std::move(recorded));
  return absl::OkStatus();
}

absl::Status Recording::TrackKnown(const InstanceKey& key, RecordedVm& recorded,
                                   const kvm::Vm& vm) {
  const bool same = SameThreads(recorded.vm, vm);
  const bool is_told = recorded.number.has_value();
  const bool begins = !paused_ && !vm.vcpus.empty() &&
                      (!same || recorded.current == nullptr ||
                       (recorded.awaited == nullptr && recorded.openings.MoreOpen(recorded.vm)));
  if (begins) {
    if (absl::Status status = BeginEpoch(key, recorded, vm); !status.ok()) return status;
  } else if (!same) {
    // The VMM lives, but every vCPU thread has exited: nothing is sampled until others come. Or it
    // is a pause, and nothing is sampled anyway.
    RetireCurrent(recorded);
  }
  const kvm::Vm before = std::exchange(recorded.vm, vm);  // a rescan remembers what it asked
  if (is_told && !same) SayChange(recorded, before);
  return absl::OkStatus();
}

void Recording::SayChange(const RecordedVm& recorded, const kvm::Vm& before) {
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_VCPUS_CHANGED,
               DescribeChange(before, recorded.vm), recorded.vm);
}

Openings::Before Recording::BeforeNext(const RecordedVm& recorded, const kvm::Vm& vm) const {
  if (!vms_.contains(KeyOf(vm))) return Openings::Before::kNewVm;
  if (recorded.current == nullptr) return Openings::Before::kNone;
  if (!recorded.current->vcpus.empty()) return Openings::Before::kCounting;
  return SameThreads(recorded.vm, vm) ? Openings::Before::kUncovered : Openings::Before::kNone;
}

absl::Status Recording::BeginEpoch(const InstanceKey& key, RecordedVm& recorded,
                                   const kvm::Vm& vm) {
  absl::StatusOr<Openings::Next> next = recorded.openings.Open(vm, BeforeNext(recorded, vm));
  if (!next.ok()) return next.status();
  Say(vm, next->notice);
  if (!next->groups) return absl::OkStatus();
  sampler::Epoch* const before = recorded.current;
  absl::Status status = ChangeOver(key, recorded, vm, *std::move(next->groups));
  if (status.ok() && next->awaits_descriptors) recorded.awaited = before;  // LetGo goes on
  return status;
}

void Recording::Say(const kvm::Vm& vm, const std::string& notice) {
  if (!notice.empty()) notices_.Add(Label(vm), notice);
}

absl::Status Recording::ChangeOver(const InstanceKey& key, RecordedVm& recorded, const kvm::Vm& vm,
                                   kvm::OpenedGroups now_open) {
  kvm::OpenedGroups* const opened = &now_open;
  const uint32_t vm_number = recorded.number.value_or(next_vm_);
  const uint32_t number = recorded.epochs + 1;
  if (opened->layout.empty()) opened->layout.emplace_back();
  const size_t groups = opened->layout.size();
  const size_t sample_bytes = sampler::SampleBytes(opened->vcpus.size(), groups);
  size_t taken_bytes = 0;
  for (const auto& [other, live] : epochs_) taken_bytes += live.buffer_bytes;
  const size_t buffers = sampler::BuffersFor(options_.interval, sample_bytes, taken_bytes);
  absl::StatusOr<std::unique_ptr<sampler::Epoch>> epoch =
      sampler::Epoch::Start(vm_number, number, *opened, buffers, options_.keeper);
  if (!epoch.ok()) return epoch.status();

  if (number == 1) {
    AddLifeCycle(vm_number, v1::LifeCycle::KIND_VM_FOUND,
                 absl::StrCat(Plural(opened->vcpus.size(), "vCPU"), Again(vm)), vm);
    skipped_.erase(key);
  }
  if (!opened->degraded_reason.empty() && number == 1) {
    Say(vm, absl::StrCat("no hardware counters (degraded): ", opened->degraded_reason));
  }
  if (number == 1 && options_.open.wanted.ByName()) SayAbsent(*opened, vm);
  std::vector<std::string_view> names;
  for (const kvm::Event& event : opened->layout.front().events) names.push_back(event.name);
  const core::EventSlots slots = core::FindSlots(names);
  const core::Classifier classifier = core::Choose(options_.classifier, slots);
  v1::TimelineRecord record;
  const int64_t now_ns = options_.now_ns();
  *record.mutable_vcpu_set() = MakeVcpuSet(vm_number, number, now_ns, vm, *opened);
  record.mutable_vcpu_set()->set_classifier(std::string(core::ToString(classifier)));
  const std::string cannot_tell = kvm::WhyPauseCannotBeTold(options_.root, vm);
  if (!cannot_tell.empty()) record.mutable_vcpu_set()->add_notes(cannot_tell);
  writer_.Add(std::move(record), now_ns);

  LiveEpoch live{
      .epoch = std::move(*epoch),
      .key = key,
      .counted = vm,
      .vcpu_indexes = {},
      .classifier = core::EpochClassifier(
          {.vcpus = opened->vcpus.size(), .slots = slots, .core_pmus = opened->core_pmus},
          classifier, options_.profile, absl::ToInt64Nanoseconds(options_.interval)),
      .verdicts = std::vector<core::Verdict>(opened->vcpus.size()),
      .tells_spinning = slots.cycles && slots.instructions,
      .runs = RunWatch(opened->vcpus.size(), groups, opened->core_pmus, opened->multiplexed),
      .buffer_bytes = buffers * sample_bytes,
      .pause = WatchOf(vm, opened->vcpus)};
  live.counted.vcpus = opened->vcpus;
  if (options_.statistics && !opened->vcpus.empty()) {
    live.statistics.emplace(options_.root, live.counted, options_.kernel_release, options_.now_ns);
  }
  for (const kvm::Vcpu& vcpu : opened->vcpus) {
    live.vcpu_indexes.push_back(static_cast<uint32_t>(vcpu.index));
  }
  if (number == 1) SayNoSpinning(live, vm);
  SayNotKept(*live.epoch, vm);
  RetireCurrent(recorded);
  sampler_.Add(live.epoch.get());  // the queue holds two commands for every epoch there can be
  sampler_news_ = true;
  if (!recorded.number) recorded.number = next_vm_++;
  recorded.epochs = number;
  recorded.current = live.epoch.get();
  epochs_.emplace(live.epoch.get(), std::move(live));
  recorded.openings.Began(std::move(now_open));
  return absl::OkStatus();
}

void Recording::SayNotKept(const sampler::Epoch& epoch, const kvm::Vm& vm) {
  if (options_.keeper == nullptr) return;
  const auto kept = std::ranges::count_if(epoch.vcpus, &sampler::VcpuSource::IsKept);
  const size_t others = epoch.vcpus.size() - static_cast<size_t>(kept);
  if (others == 0) return;
  Say(vm, absl::StrCat(Plural(others, "vCPU"), " of ", epoch.vcpus.size(),
                       " read by read(2): BPF keeps ", kvm::kKeptGroups,
                       " groups of events per vCPU and ", kvm::kKeptRecords, " in all"));
}

void Recording::SayAbsent(const kvm::OpenedGroups& opened, const kvm::Vm& vm) {
  std::string names;
  for (const kvm::AbsentEvent& event : opened.absent) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", event.name);
  }
  if (names.empty()) return;
  Say(vm, absl::StrCat("not counted of --events: ", names, " (`vcpulse report` has the reasons)"));
}

void Recording::RetireCurrent(RecordedVm& recorded) {
  if (recorded.current == nullptr) return;
  sampler_.Retire(recorded.current);
  sampler_news_ = true;
  recorded.current = nullptr;
  recorded.awaited = nullptr;
}

void Recording::Ended(const InstanceKey& key, const std::string& detail) {
  if (const auto skipped = skipped_.extract(key)) {
    AddLifeCycle(std::nullopt, v1::LifeCycle::KIND_VM_ENDED, detail, skipped.mapped());
  }
  const auto known = vms_.find(key);
  if (known == vms_.end()) return;
  RetireCurrent(known->second);
  // One that came and went during a pause is not known to the timeline.
  if (known->second.number) {
    AddLifeCycle(known->second.number, v1::LifeCycle::KIND_VM_ENDED, detail, known->second.vm);
  }
  Remember(known->second.vm);
  vms_.erase(known);
}

void Recording::Skipped(const kvm::Vm& vm, v1::LifeCycle::SkipReason reason,
                        const std::string& why) {
  if (skipped_.size() >= kMostSkipped) skipped_.clear();  // said again at worst
  if (!skipped_.emplace(KeyOf(vm), vm).second) return;
  AddLifeCycle(std::nullopt, v1::LifeCycle::KIND_VM_SKIPPED, why, vm, std::nullopt, reason);
  notices_.Add(Label(vm), absl::StrCat("not recorded: ", why));
}

void Recording::Mark(const std::string& name, int64_t mono_ns) {
  v1::TimelineRecord record;
  record.mutable_marker()->set_name(name);
  record.mutable_marker()->set_mono_ns(mono_ns);
  writer_.Add(std::move(record), mono_ns);
}

void Recording::RetireAll() {
  for (auto& [key, recorded] : vms_) RetireCurrent(recorded);
}

void Recording::Drain() {
  sampler::Handover handover;
  while (sampler_.Take(handover)) {
    switch (handover.kind) {
      case sampler::Handover::Kind::kSample:
        TakeSample(epochs_.at(handover.epoch), handover);
        break;
      case sampler::Handover::Kind::kReadFailed:
        AddGap(handover, v1::Gap::REASON_READ_FAILED);
        handover.epoch->Recycle(handover.sample);
        if (handover.error == ESRCH) suspects_.push_back(epochs_.at(handover.epoch).key);
        break;
      case sampler::Handover::Kind::kQueueFull:
        AddGap(handover, v1::Gap::REASON_QUEUE_FULL);
        break;
      case sampler::Handover::Kind::kTickMissed:
        if (paused_) break;  // no VM was to be sampled
        AddGap(handover, v1::Gap::REASON_TICK_MISSED);
        break;
      case sampler::Handover::Kind::kRetired:
        LetGo(handover.epoch);
        break;
    }
  }
  CollectWindows();
  WriteWindows();
  // After the samples that were taken before it: a tick that follows in the timeline is a later
  // one.
  if (!options_.statistics) return;
  for (const auto& [key, recorded] : vms_) {
    if (recorded.current != nullptr) ReadStatistics(epochs_.at(recorded.current));
  }
}

void Recording::LetGo(sampler::Epoch* epoch) {
  const auto live = epochs_.find(epoch);
  AddNotOpened(live->second);
  for (TriggeredWindows& windows : windows_) windows.End({epoch->vm, epoch->number});
  WriteWindows();
  writer_.EndEpoch(epoch->vm, epoch->number);
  const InstanceKey key = live->second.key;
  epochs_.erase(live);
  const auto known = vms_.find(key);
  if (known == vms_.end() || known->second.awaited != epoch) return;
  known->second.awaited = nullptr;
  const absl::Status status = BeginEpoch(key, known->second, known->second.vm);
  if (!status.ok()) notices_.Add(std::string(status.message()));
}

void Recording::TakeSample(LiveEpoch& live, const sampler::Handover& handover) {
  core::Sample& sample = *handover.sample;
  if (sample.vcpus.empty()) {
    TakeUncovered(live, sample);
  } else {
    const auto known = vms_.find(live.key);
    RecordedVm* const recorded = known == vms_.end() ? nullptr : &known->second;
    const bool is_current = recorded != nullptr && recorded->current == live.epoch.get();
    WatchPause(live, is_current ? recorded : nullptr, sample);
    live.classifier.Classify(sample, residency_, live.verdicts);
    writer_.AddTick(live.epoch->vm, live.epoch->number, sample, live.verdicts);
    live.sampled = true;
    ++progress_.samples;
    progress_.vcpu_samples += sample.vcpus.size();
    if (handover.last) suspects_.push_back(live.key);
    for (TriggeredWindows& windows : windows_) {
      windows.Observe({live.epoch->vm, live.epoch->number}, live.counted, sample, live.verdicts);
    }
    if (is_current) WatchRuns(live, *recorded, sample);
    if (recorded != nullptr) SayWhatNeverCounts(live, *recorded);
  }
  live.epoch->Recycle(handover.sample);
}

void Recording::SayWhatNeverCounts(const LiveEpoch& live, RecordedVm& recorded) {
  if (recorded.said_never_counts) return;
  const auto never_counts = [&](size_t vcpu) {
    const core::Features& features = live.classifier.features(vcpu);
    return live.verdicts[vcpu].raw_rule == core::Rule::kNotCounted && features.never_counted &&
           features.ran_since_start_ns >= core::kEnoughToCount_ns;
  };
  size_t vcpu = 0;
  while (vcpu < live.verdicts.size() && !never_counts(vcpu)) ++vcpu;
  if (vcpu == live.verdicts.size()) return;
  recorded.said_never_counts = true;
  Say(recorded.vm,
      absl::StrCat("the counters of vCPU ", live.vcpu_indexes.at(vcpu),
                   " run and count no guest cycle: a confidential guest, or a nested or virtual "
                   "PMU that does not count guests apart; what it does stays "
                   "UNKNOWN(not-counted)"));
}

void Recording::TakeUncovered(LiveEpoch& live, const core::Sample& sample) {
  if (!live.uncovered) live.uncovered = sampler::TickRange{sample.tick, sample.tick};
  live.uncovered->last = sample.tick;
  live.uncovered_ns = sample.wake_ns;
  const auto ticks = static_cast<double>(live.uncovered->last - live.uncovered->first + 1);
  if (ticks * options_.interval >= kLongestGapRecord) AddNotOpened(live);
}

void Recording::AddNotOpened(LiveEpoch& live) {
  if (!live.uncovered) return;
  AddGap({.epoch = live.epoch.get(), .ticks = *live.uncovered, .mono_ns = live.uncovered_ns},
         v1::Gap::REASON_NOT_OPENED);
  live.uncovered.reset();
}

void Recording::WatchRuns(LiveEpoch& live, RecordedVm& recorded, const core::Sample& sample) {
  Openings& openings = recorded.openings;
  if (openings.opened().set == kvm::ToString(kvm::EventSet::kDegraded)) return;  // always runs
  for (const TriggeredWindows& windows : windows_) {
    // They take turns with a window where the PMU has no counter left.
    for (const size_t vcpu : windows.SharingTheirPmu({live.epoch->vm, live.epoch->number})) {
      live.runs.PassOver(vcpu, sample.vcpus[vcpu].time_enabled_ns);
    }
  }
  const RunWatch::Finding finding = live.runs.Observe(sample);
  if (finding == RunWatch::Finding::kStarves && !live.starves) {
    live.starves = true;  // said once, where there is no step left
    StepDown(live.key, recorded, live.runs.ran_before());
  } else if (finding == RunWatch::Finding::kRuns) {
    if (openings.Runs()) Say(recorded.vm, NameOf(openings.opened()) + " runs again");
    ClimbWhereDue(live.key, recorded);
  }
}

void Recording::ClimbWhereDue(const InstanceKey& key, RecordedVm& recorded) {
  Openings& openings = recorded.openings;
  const int64_t now_ns = options_.now_ns();
  const std::string from = NameOf(openings.opened());
  std::optional<kvm::OpenedGroups> above = openings.TryAbove(recorded.vm, now_ns);
  if (!above) return;
  if (!ChangeOver(key, recorded, recorded.vm, *std::move(above)).ok()) {
    openings.NotClimbed(now_ns);
    return;
  }
  Say(recorded.vm, openings.Climbed(recorded.vm));
  const std::string detail =
      absl::StrCat("trying ", NameOf(openings.opened()), " again, in place of ", from);
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_RESTORED, detail, recorded.vm);
}

void Recording::StepDown(const InstanceKey& key, RecordedVm& recorded, bool ran_before) {
  Openings& openings = recorded.openings;
  const Openings::Step step = openings.StepBelow(ran_before);
  bool is_said = false;
  if (step.to) {
    const Openings::FirstRung before = openings.BeginAt(*step.to);
    if (absl::Status status = BeginEpoch(key, recorded, recorded.vm); !status.ok()) {
      openings.BeginAt(before);
      notices_.Add(std::string(status.message()));
      return;
    }
    is_said = openings.SteppedDown(before, options_.now_ns());
  }
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_REDUCED, step.detail, recorded.vm);
  if (!is_said) Say(recorded.vm, step.detail);
}

void Recording::AddGap(const sampler::Handover& handover, v1::Gap::Reason reason) {
  v1::TimelineRecord record;
  v1::Gap& gap = *record.mutable_gap();
  gap.set_reason(reason);
  gap.set_first_tick(handover.ticks.first);
  gap.set_last_tick(handover.ticks.last);
  gap.set_mono_ns(handover.mono_ns);
  if (handover.epoch != nullptr) {
    gap.set_vm(handover.epoch->vm);
    gap.set_epoch(handover.epoch->number);
  }
  if (reason == v1::Gap::REASON_READ_FAILED) {
    gap.set_vcpu_index(epochs_.at(handover.epoch).vcpu_indexes.at(handover.vcpu));
    gap.set_error(handover.error);
  }
  writer_.Add(std::move(record), handover.mono_ns);
  ++progress_.gaps;
}

std::vector<kvm::Vm> Recording::vms() const {
  std::vector<kvm::Vm> all;
  all.reserve(vms_.size());
  for (const auto& [key, recorded] : vms_) all.push_back(recorded.vm);
  return all;
}

std::vector<kvm::Vm> Recording::skipped() const {
  std::vector<kvm::Vm> all;
  all.reserve(skipped_.size());
  for (const auto& [key, vm] : skipped_) all.push_back(vm);
  return all;
}

Progress Recording::progress() const {
  Progress progress = progress_;
  for (const auto& [key, recorded] : vms_) {
    const auto live = epochs_.find(recorded.current);
    if (live == epochs_.end()) continue;
    progress.vms.push_back({.name = recorded.vm.name, .vcpus = live->second.verdicts});
  }
  return progress;
}

std::array<uint64_t, core::kBands> Progress::Bands() const {
  std::array<uint64_t, core::kBands> bands{};
  for (const Vm& vm : vms) {
    for (const core::Verdict& verdict : vm.vcpus) {
      const auto band = static_cast<size_t>(verdict.band);
      ++bands[band < bands.size() ? band : 0];
    }
  }
  return bands;
}

}  // namespace vcpulse::recorder

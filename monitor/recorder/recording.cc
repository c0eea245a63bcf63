#include "monitor/recorder/recording.h"

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/discovery/pause.h"
#include "kvm/events/event_ladder.h"
#include "monitor/core/event_slots.h"
#include "monitor/recorder/session_record.h"
#include "monitor/recorder/step_down.h"

namespace vcpulse::recorder {
namespace {

// Memory for this much of samples stands between the tick and a writer that stalls.
constexpr absl::Duration kBufferedTime = absl::Seconds(2);
constexpr int64_t kFewestBuffers = 16;
constexpr int64_t kMostBuffers = 2048;

// VMs that were left out, of which it is remembered that it was said.
constexpr size_t kMostSkipped = 4096;

size_t BuffersFor(absl::Duration interval) {
  return static_cast<size_t>(std::clamp(absl::FDivDuration(kBufferedTime, interval) + 1.0,
                                        static_cast<double>(kFewestBuffers),
                                        static_cast<double>(kMostBuffers)));
}

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

Recording::Recording(const Options& options, kvm::PerfEvents& perf, timeline::RecordWriter& writer)
    : options_(options),
      perf_(perf),
      writer_(writer),
      sampler_({.now_ns = options.now_ns, .state_below = options.profile.presence.halted_leave}),
      residency_(options.residency) {}

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
  RecordedVm recorded;
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
  if (!paused_ && !vm.vcpus.empty() && (!same || recorded.current == nullptr)) {
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

absl::Status Recording::BeginEpoch(const InstanceKey& key, RecordedVm& recorded,
                                   const kvm::Vm& vm) {
  kvm::OpenOptions open = options_.open;
  open.first_rung = recorded.first_rung;
  open.given_up = recorded.given_up;
  absl::StatusOr<kvm::OpenedGroups> opened = kvm::OpenGroups(perf_, options_.root, vm, open);
  if (!opened.ok()) return opened.status();

  const uint32_t vm_number = recorded.number.value_or(next_vm_);
  const uint32_t number = recorded.epochs + 1;
  absl::StatusOr<std::unique_ptr<sampler::Epoch>> epoch =
      sampler::Epoch::Start(vm_number, number, options_.root, vm.pid, std::move(opened->groups),
                            opened->vcpus, BuffersFor(options_.interval));
  if (!epoch.ok()) return epoch.status();

  if (number == 1) {
    AddLifeCycle(vm_number, v1::LifeCycle::KIND_VM_FOUND,
                 absl::StrCat(opened->vcpus.size(), " vCPUs", Again(vm)), vm);
  }
  if (!opened->degraded_reason.empty() && number == 1) {
    notices_.push_back(absl::StrCat(
        "VM ", Label(vm), ": no hardware counters (degraded): ", opened->degraded_reason));
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
      .vcpu_indexes = {},
      .classifier = core::EpochClassifier(
          {.vcpus = opened->vcpus.size(), .slots = slots, .core_pmus = opened->core_pmus},
          classifier, options_.profile, absl::ToInt64Nanoseconds(options_.interval)),
      .verdicts = std::vector<core::Verdict>(opened->vcpus.size()),
      .opened = {.set = opened->set,
                 .rung = opened->rung,
                 .multiplexed = opened->multiplexed,
                 .largest_group = LargestGroup(opened->layout),
                 .core_pmus = opened->core_pmus,
                 .absent = opened->absent},
      .pause = WatchOf(vm, opened->vcpus)};
  for (const kvm::Vcpu& vcpu : opened->vcpus) {
    live.vcpu_indexes.push_back(static_cast<uint32_t>(vcpu.index));
  }
  RetireCurrent(recorded);
  sampler_.Add(live.epoch.get());  // the queue holds two commands for every epoch there can be
  sampler_news_ = true;
  if (!recorded.number) recorded.number = next_vm_++;
  recorded.epochs = number;
  recorded.current = live.epoch.get();
  epochs_.emplace(live.epoch.get(), std::move(live));
  return absl::OkStatus();
}

void Recording::SayAbsent(const kvm::OpenedGroups& opened, const kvm::Vm& vm) {
  std::string names;
  for (const kvm::AbsentEvent& event : opened.absent) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", event.name);
  }
  if (names.empty()) return;
  notices_.push_back(absl::StrCat("VM ", Label(vm), ": not counted of --events: ", names,
                                  " (`vcpulse report` has the reasons)"));
}

void Recording::RetireCurrent(RecordedVm& recorded) {
  if (recorded.current == nullptr) return;
  sampler_.Retire(recorded.current);
  sampler_news_ = true;
  recorded.current = nullptr;
}

void Recording::Ended(const InstanceKey& key, const std::string& detail) {
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
  if (!skipped_.emplace(KeyOf(vm), why).second) return;
  AddLifeCycle(std::nullopt, v1::LifeCycle::KIND_VM_SKIPPED, why, vm, std::nullopt, reason);
  notices_.push_back(absl::StrCat("VM ", Label(vm), " is not recorded: ", why));
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
        writer_.EndEpoch(handover.epoch->vm, handover.epoch->number);
        epochs_.erase(handover.epoch);
        break;
    }
  }
}

void Recording::TakeSample(LiveEpoch& live, const sampler::Handover& handover) {
  WatchPause(live, *handover.sample);
  const core::Sample& sample = *handover.sample;
  live.classifier.Classify(sample, residency_, live.verdicts);
  writer_.AddTick(live.epoch->vm, live.epoch->number, sample, live.verdicts);
  ++progress_.samples;
  progress_.vcpu_samples += sample.vcpus.size();
  if (handover.last) suspects_.push_back(live.key);
  WatchNeverRunning(live, sample);
  live.epoch->Recycle(handover.sample);
}

void Recording::WatchNeverRunning(LiveEpoch& live, const core::Sample& sample) {
  if (live.opened.set == kvm::ToString(kvm::EventSet::kDegraded)) return;  // software always runs
  const bool never_ran = AnyGroupNeverRan(sample, live.opened.core_pmus, live.opened.multiplexed);
  live.never_ran = never_ran ? live.never_ran + 1 : 0;
  if (live.never_ran != kNeverRanSamples) return;
  const auto known = vms_.find(live.key);
  if (known == vms_.end() || known->second.current != live.epoch.get()) return;
  StepDown(live.key, known->second, live.opened);
}

void Recording::StepDown(const InstanceKey& key, RecordedVm& recorded, const OpenedSummary& from) {
  const std::vector<kvm::Rung> ladder = kvm::LadderOf(options_.open.wanted);
  const size_t next = NextDifferentRung(ladder, from.rung, from.largest_group, from.absent);
  if (next == ladder.size()) {
    const std::string detail = absl::StrCat(
        "event set ", from.set,
        " opened but never ran, and there is no smaller one: somebody else "
        "holds all counters of the PMU; what the vCPUs do beside HALTED stays UNKNOWN");
    AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_REDUCED, detail, recorded.vm);
    notices_.push_back(absl::StrCat("VM ", Label(recorded.vm), ": ", detail));
    return;
  }
  const RecordedVm before = recorded;
  recorded.first_rung = next;
  recorded.given_up = from.absent;
  const std::vector<kvm::Event> kept = kvm::EventsOf(ladder[next]);
  std::string lost;
  for (const kvm::Event& event : kvm::EventsOf(ladder[from.rung])) {
    const bool is_kept = std::ranges::find(kept, event.name, &kvm::Event::name) != kept.end();
    const bool is_absent =
        std::ranges::find(from.absent, event.name, &kvm::AbsentEvent::name) != from.absent.end();
    if (is_kept || is_absent) continue;
    recorded.given_up.push_back({event.name, 0, "the group with it never ran"});
    absl::StrAppend(&lost, lost.empty() ? "" : ", ", event.name);
  }
  const std::string detail = absl::StrCat(
      "event set ", from.set,
      " opened but never ran (too few free counters: NMI watchdog, a guest's own vPMU or another "
      "profiler); stepped down to ",
      ladder[next].multiplexed ? absl::StrCat("groups of at most ", ladder[next].largest_group)
                               : ladder[next].name,
      lost.empty() ? "" : ", without ", lost);
  if (absl::Status status = BeginEpoch(key, recorded, recorded.vm); !status.ok()) {
    recorded.first_rung = before.first_rung;
    recorded.given_up = before.given_up;
    notices_.push_back(std::string(status.message()));
    return;
  }
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_REDUCED, detail, recorded.vm);
  notices_.push_back(absl::StrCat("VM ", Label(recorded.vm), ": ", detail));
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

Progress Recording::progress() const {
  Progress progress = progress_;
  for (const auto& [key, recorded] : vms_) {
    const auto live = epochs_.find(recorded.current);
    if (live == epochs_.end()) continue;
    for (const core::Verdict& verdict : live->second.verdicts) {
      ++progress.bands[static_cast<size_t>(verdict.band)];
    }
  }
  return progress;
}

}  // namespace vcpulse::recorder

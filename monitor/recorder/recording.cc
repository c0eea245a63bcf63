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

// A gap that lasts is one record per so much time.
constexpr absl::Duration kLongestGapRecord = absl::Seconds(1);

// VMs that were left out, of which it is remembered that it was said.
constexpr size_t kMostSkipped = 4096;

constexpr std::string_view kChangingOver =
    "descriptors are short: the counters before were closed first, so that these can be opened";

std::string Label(const kvm::Vm& vm) { return absl::StrCat(vm.name, " (PID ", vm.pid, ")"); }

// What is counted, for people.
std::string NameOf(const kvm::OpenedGroups& opened) {
  return opened.multiplexed ? absl::StrCat("groups of at most ", LargestGroup(opened.layout))
                            : absl::StrCat("event set ", opened.set);
}

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
      sampler_({.now_ns = options.now_ns,
                .state_below = std::max(sampler::Sampler::Options{}.state_below,
                                        options.profile.presence.halted_leave)}),
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
  const bool begins = !paused_ && !vm.vcpus.empty() &&
                      (!same || recorded.current == nullptr || CanOpenMore(recorded));
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

kvm::OpenOptions Recording::OpenOptionsOf(const RecordedVm& recorded) const {
  kvm::OpenOptions open = options_.open;
  open.first_rung = recorded.first_rung.rung;
  open.given_up = recorded.first_rung.given_up;
  return open;
}

bool Recording::CanOpenMore(const RecordedVm& recorded) const {
  if (recorded.lacking.empty() || recorded.awaited != nullptr) return false;
  kvm::OpenOptions open = OpenOptionsOf(recorded);
  open.as_many_as_open = true;
  open.require_counters = open.require_counters || recorded.opened.degraded_reason.empty();
  kvm::Vm rest = recorded.vm;
  rest.vcpus = recorded.lacking;
  const absl::StatusOr<kvm::OpenedGroups> opened =
      kvm::OpenGroups(perf_, options_.root, rest, open);
  return opened.ok() && !opened->vcpus.empty();
}

absl::Status Recording::BeginEpoch(const InstanceKey& key, RecordedVm& recorded,
                                   const kvm::Vm& vm) {
  kvm::OpenOptions open = OpenOptionsOf(recorded);
  absl::StatusOr<kvm::OpenedGroups> opened = kvm::OpenGroups(perf_, options_.root, vm, open);
  if (opened.ok()) {
    SayLacking(recorded, vm, opened->unopened);
    return ChangeOver(key, recorded, vm, *std::move(opened));
  }
  const bool is_new = !vms_.contains(key);
  if (is_new || absl::IsNotFound(opened.status())) return opened.status();

  sampler::Epoch* const before = recorded.current;
  if (absl::IsResourceExhausted(opened.status()) && before != nullptr && !before->vcpus.empty()) {
    // The epoch before holds what this one needs: it is closed first, and Drain goes on from there.
    absl::Status status = ChangeOver(key, recorded, vm, NothingOpened(recorded, vm, kChangingOver));
    if (status.ok()) recorded.awaited = before;
    return status;
  }
  open.as_many_as_open = true;
  opened = kvm::OpenGroups(perf_, options_.root, vm, open);
  if (absl::IsNotFound(opened.status())) return opened.status();
  if (!opened.ok()) opened = NothingOpened(recorded, vm, std::string(opened.status().message()));
  SayLacking(recorded, vm, opened->unopened);
  const bool still_nothing = opened->vcpus.empty() && before != nullptr && before->vcpus.empty() &&
                             SameThreads(recorded.vm, vm);
  if (still_nothing) return absl::OkStatus();
  return ChangeOver(key, recorded, vm, *std::move(opened));
}

kvm::OpenedGroups Recording::NothingOpened(const RecordedVm& recorded, const kvm::Vm& vm,
                                           std::string_view why) {
  kvm::OpenedGroups none{.set = recorded.opened.set,
                         .rung = recorded.opened.rung,
                         .multiplexed = recorded.opened.multiplexed,
                         .layout = recorded.opened.layout,
                         .core_pmus = recorded.opened.core_pmus,
                         .absent = recorded.opened.absent,
                         .degraded_reason = recorded.opened.degraded_reason};
  for (const kvm::Vcpu& vcpu : vm.vcpus) {
    none.unopened.push_back({vcpu, 0, std::string(why)});
  }
  return none;
}

void Recording::SayLacking(RecordedVm& recorded, const kvm::Vm& vm,
                           const std::vector<kvm::UnopenedVcpu>& unopened) {
  recorded.lacking.clear();
  std::string text;
  for (const kvm::UnopenedVcpu& vcpu : unopened) {
    if (vcpu.error == ESRCH) continue;  // gone: a rescan finds who came in its place
    recorded.lacking.push_back(vcpu.vcpu);
    text = vcpu.reason;
  }
  if (!text.empty()) {
    text = absl::StrCat(recorded.lacking.size(), " of ", vm.vcpus.size(),
                        " vCPUs are not counted, and tried again each second: ", text);
  }
  if (text == recorded.said_lacking) return;
  notices_.push_back(
      absl::StrCat("VM ", Label(vm), ": ", text.empty() ? "all vCPUs are counted again" : text));
  recorded.said_lacking = text;
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
      sampler::Epoch::Start(vm_number, number, *opened, buffers);
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
      .runs = RunWatch(opened->vcpus.size(), groups, opened->core_pmus, opened->multiplexed),
      .buffer_bytes = buffers * sample_bytes,
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
  recorded.opened = std::move(now_open);
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
  recorded.awaited = nullptr;
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
        LetGo(handover.epoch);
        break;
    }
  }
}

void Recording::LetGo(sampler::Epoch* epoch) {
  const auto live = epochs_.find(epoch);
  AddNotOpened(live->second);
  writer_.EndEpoch(epoch->vm, epoch->number);
  const InstanceKey key = live->second.key;
  epochs_.erase(live);
  const auto known = vms_.find(key);
  if (known == vms_.end() || known->second.awaited != epoch) return;
  known->second.awaited = nullptr;
  const absl::Status status = BeginEpoch(key, known->second, known->second.vm);
  if (!status.ok()) notices_.push_back(std::string(status.message()));
}

void Recording::TakeSample(LiveEpoch& live, const sampler::Handover& handover) {
  core::Sample& sample = *handover.sample;
  if (sample.vcpus.empty()) {
    TakeUncovered(live, sample);
  } else {
    WatchPause(live, sample);
    live.classifier.Classify(sample, residency_, live.verdicts);
    writer_.AddTick(live.epoch->vm, live.epoch->number, sample, live.verdicts);
    ++progress_.samples;
    progress_.vcpu_samples += sample.vcpus.size();
    if (handover.last) suspects_.push_back(live.key);
    WatchRuns(live, sample);
    SayWhatNeverCounts(live);
  }
  live.epoch->Recycle(handover.sample);
}

void Recording::SayWhatNeverCounts(const LiveEpoch& live) {
  const auto known = vms_.find(live.key);
  if (known == vms_.end() || known->second.said_never_counts) return;
  const auto never_counts = [&](size_t vcpu) {
    const core::Features& features = live.classifier.features(vcpu);
    return live.verdicts[vcpu].raw_rule == core::Rule::kNotCounted && features.never_counted &&
           features.ran_since_start_ns >= core::kEnoughToCount_ns;
  };
  size_t vcpu = 0;
  while (vcpu < live.verdicts.size() && !never_counts(vcpu)) ++vcpu;
  if (vcpu == live.verdicts.size()) return;
  known->second.said_never_counts = true;
  notices_.push_back(absl::StrCat(
      "VM ", Label(known->second.vm), ": the counters of vCPU ", live.vcpu_indexes.at(vcpu),
      " run and count no guest cycle: a confidential guest, or a nested or virtual PMU that does "
      "not count guests apart; what it does stays UNKNOWN(not-counted)"));
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

void Recording::WatchRuns(LiveEpoch& live, const core::Sample& sample) {
  const auto known = vms_.find(live.key);
  if (known == vms_.end() || known->second.current != live.epoch.get()) return;
  RecordedVm& recorded = known->second;
  if (recorded.opened.set == kvm::ToString(kvm::EventSet::kDegraded)) return;  // always runs
  const RunWatch::Finding finding = live.runs.Observe(sample);
  if (finding == RunWatch::Finding::kStarves && !live.starves) {
    live.starves = true;  // said once, where there is no step left
    StepDown(live.key, recorded, live.runs.ran_before());
  } else if (finding == RunWatch::Finding::kRuns) {
    if (std::exchange(recorded.trying, false)) {
      notices_.push_back(
          absl::StrCat("VM ", Label(recorded.vm), ": ", NameOf(recorded.opened), " runs again"));
    }
    ClimbWhereDue(live.key, recorded);
  }
}

void Recording::ClimbWhereDue(const InstanceKey& key, RecordedVm& recorded) {
  const int64_t now_ns = options_.now_ns();
  if (recorded.steps.empty() || !recorded.climb.IsDue(now_ns)) return;
  const std::string from = NameOf(recorded.opened);
  const size_t from_rung = recorded.opened.rung;
  const FirstRung below = std::exchange(recorded.first_rung, recorded.steps.back());
  kvm::OpenOptions open = OpenOptionsOf(recorded);
  open.require_counters = true;  // the set that runs is better than none
  absl::StatusOr<kvm::OpenedGroups> opened =
      kvm::OpenGroups(perf_, options_.root, recorded.vm, open);
  recorded.climb.Climbed(now_ns);
  if (!opened.ok() || opened->rung >= from_rung || !opened->unopened.empty() ||
      !ChangeOver(key, recorded, recorded.vm, *std::move(opened)).ok()) {
    recorded.first_rung = below;
    recorded.climb.SteppedDown(now_ns);
    return;
  }
  recorded.steps.pop_back();
  recorded.trying = true;
  SayLacking(recorded, recorded.vm, {});
  const std::string detail =
      absl::StrCat("trying ", NameOf(recorded.opened), " again, in place of ", from);
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_RESTORED, detail, recorded.vm);
}

void Recording::StepDown(const InstanceKey& key, RecordedVm& recorded, bool ran_before) {
  const std::vector<kvm::Rung> ladder = kvm::LadderOf(options_.open.wanted);
  const std::vector<kvm::AbsentEvent> absent = recorded.opened.absent;
  const size_t from = recorded.opened.rung;
  const size_t next = NextDifferentRung(ladder, from, LargestGroup(recorded.opened.layout), absent);
  const std::string what = absl::StrCat("event set ", recorded.opened.set,
                                        ran_before ? " no longer runs" : " opened but never ran");
  if (next == ladder.size()) {
    const std::string detail = absl::StrCat(
        what,
        ", and there is no smaller one: somebody else "
        "holds all counters of the PMU; what the vCPUs do beside HALTED stays UNKNOWN");
    AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_REDUCED, detail, recorded.vm);
    notices_.push_back(absl::StrCat("VM ", Label(recorded.vm), ": ", detail));
    return;
  }
  const FirstRung before = recorded.first_rung;
  recorded.first_rung = {.rung = next, .given_up = absent};
  const std::vector<kvm::Event> kept = kvm::EventsOf(ladder[next]);
  std::string lost;
  for (const kvm::Event& event : kvm::EventsOf(ladder[from])) {
    const bool is_kept = std::ranges::find(kept, event.name, &kvm::Event::name) != kept.end();
    const bool is_absent =
        std::ranges::find(absent, event.name, &kvm::AbsentEvent::name) != absent.end();
    if (is_kept || is_absent) continue;
    recorded.first_rung.given_up.push_back(
        {event.name, 0,
         ran_before ? "the group with it stopped running" : "the group with it never ran"});
    absl::StrAppend(&lost, lost.empty() ? "" : ", ", event.name);
  }
  const std::string detail = absl::StrCat(
      what,
      " (too few free counters: NMI watchdog, a guest's own vPMU or another "
      "profiler); stepped down to ",
      ladder[next].multiplexed ? absl::StrCat("groups of at most ", ladder[next].largest_group)
                               : ladder[next].name,
      lost.empty() ? "" : ", without ", lost);
  if (absl::Status status = BeginEpoch(key, recorded, recorded.vm); !status.ok()) {
    recorded.first_rung = before;
    notices_.push_back(std::string(status.message()));
    return;
  }
  recorded.steps.push_back(before);
  AddLifeCycle(recorded.number, v1::LifeCycle::KIND_SET_REDUCED, detail, recorded.vm);
  recorded.climb.SteppedDown(options_.now_ns());
  const bool failed_try = std::exchange(recorded.trying, false);
  if (!failed_try) notices_.push_back(absl::StrCat("VM ", Label(recorded.vm), ": ", detail));
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

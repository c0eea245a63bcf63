#pragma once

// monitor/recorder is one run: it gives VMs to the sampler epoch by epoch, and makes records of
// what comes back. It decides nothing about which VMs there are and when it ends: that is its
// caller's.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/vm.h"
#include "monitor/core/classify.h"
#include "monitor/core/epoch_classifier.h"
#include "monitor/core/residency.h"
#include "monitor/recorder/notices.h"
#include "monitor/recorder/openings.h"
#include "monitor/recorder/pause_watch.h"
#include "monitor/recorder/statistics_watch.h"
#include "monitor/recorder/step_down.h"
#include "monitor/recorder/triggered_windows.h"
#include "monitor/recorder/windows.h"
#include "monitor/sampler/sampler.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::recorder {

// Identity of a VM instance within one boot.
struct InstanceKey {
  pid_t pid = 0;
  uint64_t start_time_ticks = 0;

  auto operator<=>(const InstanceKey&) const = default;
};

InstanceKey KeyOf(const kvm::Vm& vm);

// What a live view shows.
struct Progress {
  uint64_t samples = 0;  // one per VM and tick
  uint64_t vcpu_samples = 0;
  uint64_t gaps = 0;  // Gap records

  struct Vm {
    std::string name;
    std::vector<core::Verdict> vcpus;  // the latest, in the order of its set
  };
  std::vector<Vm> vms{};  // that are recorded now

  // vCPUs by their latest band, indexed by core::Band.
  std::array<uint64_t, core::kBands> Bands() const;
};

// "21 ticks, 42 vCPU samples, 0 gaps".
std::string Counted(uint64_t ticks, uint64_t vcpu_samples, uint64_t gaps);

// One thread (the control thread), but for what the sampler's header says.
class Recording {
 public:
  struct Options {
    std::string root = "/";  // as in kvm::Discovery
    absl::Duration interval = absl::Milliseconds(100);
    kvm::OpenOptions open;
    core::ClassifierChoice classifier = core::ClassifierChoice::kAuto;
    core::Profile profile;
    std::vector<core::ResidencyBasis> residency;  // one per core PMU
    bool statistics = true;                       // see StatisticsWatch
    std::string kernel_release;                   // uname -r; for them alone
    Triggers hotspots;
    std::optional<kvm::AddressSource> hotspots_source;  // this one alone; none: all but QMP
    bool guest_code = false;                            // read around hot addresses, by QMP
    bool competitors = false;                           // who has the CPU of a starved vCPU
    OpenAddresses open_hotspots{};                      // injected by tests
    OpenCompetitors open_competitors{};                 // likewise
    kvm::ThreadKeeper* keeper = nullptr;  // counters are read from it first; outlives this
    int64_t (*now_ns)() = nullptr;        // CLOCK_MONOTONIC, injected
  };

  // `perf` and `writer` must outlive it.
  Recording(const Options& options, kvm::PerfEvents& perf, timeline::RecordWriter& writer);

  // Opens the counters of a VM that is not being recorded and begins its first epoch; a VM that is,
  // but has other vCPU threads now, begins another one, or none while it has no vCPU thread; else
  // does nothing. Errors: those of
  // kvm::OpenGroups, ResourceExhausted beyond kMaxEpochs VMs. After an error a new VM is not
  // recorded, and a known one stays as it was: both may be tried again. A known VM of which not
  // every vCPU can be opened is recorded with those that can; the others are in its VcpuSet, and
  // tried again by each Track. Ticks in which none is open are gaps. Between Pause and Resume it
  // opens nothing, and remembers the VM.
  absl::Status Track(const kvm::Vm& vm);

  // The VM has ended: closes its epoch. Does nothing where it is neither recorded nor skipped.
  void Ended(const InstanceKey& key, const std::string& detail);

  // A VM was found but is not recorded; said once per instance, until Track records it.
  void Skipped(const kvm::Vm& vm, v1::LifeCycle::SkipReason reason, const std::string& why);

  // A marker at this instant.
  void Mark(const std::string& name, int64_t mono_ns);

  // Makes records of what the sampler handed over. Called often enough that its memory for samples
  // (2 s) does not run out.
  void Drain();

  // Lets the triggered windows take in what there is, and closes those whose time has come. Called
  // ten times a second.
  void CollectWindows();

  // Closes every epoch. Ticks must still be taken in (TickThread runs, or TakeCommands is called)
  // until Drain makes idle() true.
  void RetireAll();
  bool idle() const { return epochs_.empty(); }

  // No epoch is open, and none begins until Resume: VMs are known, found and ended, and nothing is
  // counted. Says so. Called when RetireAll has made it idle().
  void Pause();
  // Says so. The VMs are sampled anew, in epochs of their own, when they are next given to Track.
  void Resume();
  bool paused() const { return paused_; }

  // The VMs being recorded.
  std::vector<kvm::Vm> vms() const;
  // Those that were Skipped: neither recorded nor ended since. To be told their end.
  std::vector<kvm::Vm> skipped() const;
  // VMs in which a vCPU thread has exited since the last call: worth a rescan now.
  std::vector<InstanceKey> TakeSuspects() { return std::exchange(suspects_, {}); }
  // Whether the sampler was given anything since the last call: its thread is to be woken.
  bool TakeSamplerNews() { return std::exchange(sampler_news_, false); }
  // Lines for people that came up since the last call (a set reduced, a VM degraded), see Notices.
  std::vector<std::string> TakeNotices() { return notices_.Take(); }

  Progress progress() const;
  sampler::Sampler& sampler() { return sampler_; }

 private:
  struct RecordedVm {
    std::optional<uint32_t> number;  // none: found during a pause, no epoch so far
    uint32_t epochs = 0;
    kvm::Vm vm;
    Openings openings;
    bool said_never_counts = false;
    sampler::Epoch* current = nullptr;
    // An epoch that is being closed for its descriptors: when the sampler has let go of it, as many
    // vCPUs as can be are opened.
    sampler::Epoch* awaited = nullptr;
    bool paused = false;
  };

  // An epoch that the sampler has not let go of yet. Where none of its VM's vCPUs could be opened
  // it has no vCPU, and its ticks are gaps.
  struct LiveEpoch {
    std::unique_ptr<sampler::Epoch> epoch;
    InstanceKey key;
    kvm::Vm counted;  // with the vCPUs that are open
    std::vector<uint32_t> vcpu_indexes;
    core::EpochClassifier classifier;
    std::vector<core::Verdict> verdicts;
    bool tells_spinning = false;  // by its events
    RunWatch runs;
    bool starves = false;  // it did once
    size_t buffer_bytes = 0;
    PauseWatch pause;
    bool sampled = false;  // it has a sample in the timeline
    std::optional<StatisticsWatch> statistics;
    std::optional<sampler::TickRange> uncovered;  // ticks without a vCPU, no gap so far
    int64_t uncovered_ns = 0;                     // when the last of them was
  };

  absl::Status TrackNew(const InstanceKey& key, const kvm::Vm& vm);
  // Of Track, for a VM that is recorded, or was found during a pause.
  absl::Status TrackKnown(const InstanceKey& key, RecordedVm& recorded, const kvm::Vm& vm);
  // Begins the next epoch of `recorded` with what of `vm` opens, if that is another one.
  absl::Status BeginEpoch(const InstanceKey& key, RecordedVm& recorded, const kvm::Vm& vm);
  Openings::Before BeforeNext(const RecordedVm& recorded, const kvm::Vm& vm) const;
  // Ends the epoch before, if there is one, and begins the next. The first one gives the VM its
  // number.
  absl::Status ChangeOver(const InstanceKey& key, RecordedVm& recorded, const kvm::Vm& vm,
                          kvm::OpenedGroups now_open);
  // A line for people about a VM; none where it is empty.
  void Say(const kvm::Vm& vm, const std::string& notice);
  // The sampler has let go of it: closes its descriptors.
  void LetGo(sampler::Epoch* epoch);
  void RetireCurrent(RecordedVm& recorded);
  // Which of the events by name are not counted, for people.
  void SayAbsent(const kvm::OpenedGroups& opened, const kvm::Vm& vm);
  // Its vCPU threads are others than `before`.
  void SayChange(const RecordedVm& recorded, const kvm::Vm& before);
  void TakeSample(LiveEpoch& live, const sampler::Handover& handover);
  // Where it is time for it.
  void ReadStatistics(LiveEpoch& live);
  // Writes the records of the triggered windows that were closed.
  void WriteWindows();
  // Where BPF keeps nothing of some vCPUs.
  void SayNotKept(const sampler::Epoch& epoch, const kvm::Vm& vm);
  // Of an epoch whose counters tell no spinning where that was asked for.
  void SayNoSpinning(const LiveEpoch& live, const kvm::Vm& vm);
  // Once per VM.
  void SayWhatNeverCounts(const LiveEpoch& live, RecordedVm& recorded);
  PauseWatch WatchOf(const kvm::Vm& vm, const std::vector<kvm::Vcpu>& vcpus) const;
  // Marks the paused vCPUs in the sample; says when the VM is paused and goes on, where this is its
  // current epoch.
  void WatchPause(LiveEpoch& live, RecordedVm* current, core::Sample& sample);
  // ", again: ..." for a VM whose name was recorded before, else "".
  std::string Again(const kvm::Vm& vm) const;
  void Remember(const kvm::Vm& vm);
  // A tick of an epoch without vCPUs.
  void TakeUncovered(LiveEpoch& live, const core::Sample& sample);
  void AddNotOpened(LiveEpoch& live);
  // Steps the set down where its counters do not run, and up again where they may.
  void WatchRuns(LiveEpoch& live, RecordedVm& recorded, const core::Sample& sample);
  void StepDown(const InstanceKey& key, RecordedVm& recorded, bool ran_before);
  void ClimbWhereDue(const InstanceKey& key, RecordedVm& recorded);
  void AddGap(const sampler::Handover& handover, v1::Gap::Reason reason);
  // At this moment, or at `mono_ns`; without a number of the recording itself, or of a VM that it
  // leaves out.
  void AddLifeCycle(std::optional<uint32_t> vm_number, v1::LifeCycle::Kind kind,
                    const std::string& detail, const std::optional<kvm::Vm>& vm,
                    std::optional<int64_t> mono_ns = std::nullopt,
                    v1::LifeCycle::SkipReason skip_reason = v1::LifeCycle::SKIP_REASON_UNSPECIFIED);

  Options options_;
  kvm::PerfEvents& perf_;
  timeline::RecordWriter& writer_;
  sampler::Sampler sampler_;
  core::ResidencyEstimator residency_;
  std::map<InstanceKey, RecordedVm> vms_;
  std::unordered_map<sampler::Epoch*, LiveEpoch> epochs_;
  std::map<InstanceKey, kvm::Vm> skipped_;
  std::map<std::string, pid_t> ended_names_;  // the latest instance of each name that has ended
  uint32_t next_vm_ = 1;
  std::vector<InstanceKey> suspects_;
  std::deque<TriggeredWindows> windows_;  // a kind each
  Notices notices_;
  bool sampler_news_ = false;
  bool paused_ = false;
  Progress progress_;
};

}  // namespace vcpulse::recorder

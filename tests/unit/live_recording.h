#pragma once

// A recording as `vcpulse record` makes it, of guests that never were: samples through live
// classifiers into a chunk writer. What the guests do changes every few ticks, so that every band
// comes up.

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "monitor/core/epoch_classifier.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/writer.h"
#include "tests/unit/timeline_fixture.h"

namespace vcpulse::replay {

struct LiveTick {
  uint32_t vm = 0;
  uint32_t epoch = 0;
  core::Sample sample;
  std::vector<core::Verdict> verdicts;
};

class LiveRecording {
 public:
  enum class Groups { kOne, kInTurns, kCorePmus };
  using VmEpoch = std::pair<uint32_t, uint32_t>;
  struct NewEpoch {
    uint32_t vm = 0;
    uint32_t epoch = 0;
    size_t vcpus = 0;
  };

  LiveRecording(int64_t interval_ns, Groups groups, bool keeps_profile = false)
      : interval_ns_(interval_ns),
        groups_(groups),
        chunks_(std::make_unique<std::vector<timeline::Bytes>>()),
        writer_(timeline::NewChunkWriter(kId, timeline::CollectInto(chunks_.get()))) {
    v1::TimelineRecord record;
    v1::Session& session = *record.mutable_session();
    session.set_stream_id(StreamIdBytes());
    session.set_host_name("host1");
    session.set_interval_ns(static_cast<uint64_t>(interval_ns));
    session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
    session.set_max_hz(2.9e9);  // busy ticks show more, so the order of the ticks counts
    if (groups == Groups::kCorePmus) session.add_further_max_hz(1.9e9);
    SetClassifier(core::ClassifierChoice::kAuto, {}, "generic", session);
    residency_ = core::ResidencyEstimator(BasesOf(session));
    writer_->Add(std::move(record), now_ns_);
    if (keeps_profile) writer_->Add(KeepProfile(profile::BuiltIn().front()), now_ns_);
  }

  static std::string StreamIdBytes() { return {kId.begin(), kId.end()}; }

  void Begin(const NewEpoch& what) {
    const VmEpoch key(what.vm, what.epoch);
    v1::TimelineRecord record;
    v1::VcpuSet& set = *record.mutable_vcpu_set();
    set.set_vm(what.vm);
    set.set_epoch(what.epoch);
    set.set_mono_ns(now_ns_);
    set.mutable_instance()->set_name("guest" + std::to_string(what.vm));
    const auto add_events = [](auto& group) {
      for (const char* event :
           {"cycles", "instructions", "branches", "branch-misses", "cache-misses"}) {
        group.add_events(event);
      }
    };
    add_events(set);
    if (groups_ != Groups::kOne) add_events(*set.add_further_groups());
    if (groups_ == Groups::kCorePmus) set.set_core_pmus(2);
    for (size_t i = 0; i < what.vcpus; ++i) {
      set.add_vcpus()->set_index(static_cast<uint32_t>(i));
    }
    const core::EpochClassifier::Layout layout = LayoutOf(set);
    const core::Classifier classifier = core::Choose(core::ClassifierChoice::kAuto, layout.slots);
    set.set_classifier(std::string(core::ToString(classifier)));
    writer_->Add(record, now_ns_);
    if (what.epoch > 1) Stop({what.vm, what.epoch - 1});
    Epoch epoch{.classifier = core::EpochClassifier(layout, classifier, {}, interval_ns_)};
    epoch.sample.vcpus.resize(what.vcpus);
    epoch.phases.resize(what.vcpus);
    if (groups_ != Groups::kOne) epoch.sample.further.resize(what.vcpus);
    epochs_.emplace(key, std::move(epoch));
  }

  // The VM's end is known; its last samples may still be in a queue.
  void Ended(uint32_t vm) {
    v1::TimelineRecord record;
    record.mutable_life_cycle()->set_vm(vm);
    record.mutable_life_cycle()->set_mono_ns(now_ns_);
    record.mutable_life_cycle()->set_kind(v1::LifeCycle::KIND_VM_ENDED);
    writer_->Add(std::move(record), now_ns_);
  }
  void Stop(const VmEpoch& key) {
    writer_->EndEpoch(key.first, key.second);
    epochs_.erase(key);
  }

  // A flush each ten ticks.
  void Run(int ticks) {
    for (int i = 0; i < ticks; ++i, ++tick_) {
      now_ns_ += interval_ns_;
      for (auto& [key, epoch] : epochs_) Sample(key, epoch);
      if (tick_ % 10 == 9) Flush();
    }
  }

  void End(const std::string& reason) {
    v1::TimelineRecord record;
    record.mutable_summary()->set_end_reason(reason);
    writer_->Add(std::move(record), now_ns_);
    Flush();
  }

  const std::vector<timeline::Bytes>& chunks() const { return *chunks_; }
  const std::vector<LiveTick>& ticks() const { return ticks_; }

 private:
  static constexpr timeline::StreamId kId = {1, 2, 3};

  // What a vCPU does for a while: shares of the tick, and per 1,000 cycles.
  struct Doing {
    uint32_t permille_on_cpu = 0;
    uint32_t permille_waiting = 0;
    core::ThreadState state = core::ThreadState::kNotRead;
    uint64_t instructions = 0;
    uint64_t branches = 0;
    uint64_t branch_misses_per_million = 0;
  };
  struct Phase {
    Doing doing;
    int ticks_left = 0;
  };
  struct Epoch {
    core::EpochClassifier classifier;
    core::Sample sample{};
    std::vector<Phase> phases{};
  };

  Doing Choose() {
    const std::vector<Doing> all = {
        {.state = core::ThreadState::kBlocked},
        {.state = core::ThreadState::kRunnable},
        {.state = core::ThreadState::kPaused},
        {.permille_on_cpu = 10, .instructions = 800, .branches = 100},
        {.permille_on_cpu = 1000, .instructions = 600, .branches = 200},
        {.permille_on_cpu = 1000, .instructions = 2000, .branches = 500},
        {.permille_on_cpu = 995,
         .instructions = 1500,
         .branches = 300,
         .branch_misses_per_million = 3000},
        {.permille_on_cpu = 1000,
         .instructions = 850,
         .branches = 60,
         .branch_misses_per_million = 150},
        {.permille_on_cpu = 450,
         .permille_waiting = 550,
         .instructions = 1200,
         .branches = 200,
         .branch_misses_per_million = 2000},
    };
    return all[random_() % all.size()];
  }

  void Sample(const VmEpoch& key, Epoch& epoch) {
    core::Sample& sample = epoch.sample;
    sample.tick = static_cast<uint64_t>(tick_);
    sample.deadline_ns = now_ns_;
    sample.wake_ns = now_ns_ + 20'000 + static_cast<int64_t>(random_() % 9000);
    int64_t read_ns = sample.wake_ns;
    for (size_t v = 0; v < sample.vcpus.size(); ++v) {
      Phase& phase = epoch.phases[v];
      if (phase.ticks_left-- <= 0) {
        phase = {.doing = Choose(), .ticks_left = 1 + static_cast<int>(random_() % 12)};
      }
      core::VcpuSample& vcpu = sample.vcpus[v];
      vcpu.read_begin_ns = read_ns;
      vcpu.read_end_ns = read_ns += 700;
      vcpu.has_scheduler_times = true;
      vcpu.state = phase.doing.state;
      Advance(phase.doing, vcpu, sample.further.empty() ? nullptr : &sample.further[v]);
    }
    std::vector<core::Verdict> verdicts(sample.vcpus.size());
    epoch.classifier.Classify(sample, residency_, verdicts);
    writer_->AddTick(key.first, key.second, sample, verdicts);
    ticks_.push_back({key.first, key.second, sample, verdicts});
  }

  void Advance(const Doing& doing, core::VcpuSample& vcpu, core::GroupSample* other) {
    const uint64_t on_cpu = static_cast<uint64_t>(interval_ns_) / 1000 * doing.permille_on_cpu;
    vcpu.time_enabled_ns += on_cpu;
    vcpu.run_ns += on_cpu;
    vcpu.run_delay_ns += static_cast<uint64_t>(interval_ns_) / 1000 * doing.permille_waiting;
    const uint64_t other_permille = other == nullptr ? 0 : random_() % 1000;
    const uint64_t other_running = on_cpu / 1000 * other_permille;
    vcpu.time_running_ns += on_cpu - other_running;
    Count(doing, on_cpu - other_running, 3000 + random_() % 200, vcpu.counts);
    if (other == nullptr) return;
    other->time_enabled_ns += on_cpu;
    other->time_running_ns += other_running;
    Count(doing, other_running, 2000, other->counts);
  }

  static void Count(const Doing& doing, uint64_t running_ns, uint64_t mhz,
                    std::array<uint64_t, core::kMaxEvents>& counts) {
    const uint64_t cycles = running_ns * mhz / 1000;
    counts[0] += cycles;
    counts[1] += cycles / 1000 * doing.instructions;
    counts[2] += cycles / 1000 * doing.branches;
    counts[4] += cycles / 1'000'000 * (doing.branch_misses_per_million > 0 ? 300 : 5);
    counts[3] += cycles / 1000 * doing.branch_misses_per_million / 1000;
  }

  void Flush() {
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns_ + 50'000);
    clock.set_realtime_ns(now_ns_ + 1'700'000'000'000'000'000);
    EXPECT_TRUE(writer_->Flush(clock).ok());
  }

  int64_t interval_ns_;
  Groups groups_;
  std::unique_ptr<std::vector<timeline::Bytes>> chunks_;
  std::unique_ptr<timeline::RecordWriter> writer_;
  core::ResidencyEstimator residency_{std::vector<core::ResidencyBasis>()};
  std::map<VmEpoch, Epoch> epochs_;
  std::vector<LiveTick> ticks_;
  std::minstd_rand random_{7};
  int64_t now_ns_ = 5'000'000'000;
  int tick_ = 0;
};

// Keeps when epochs were ended.
class EndingWriter final : public timeline::RecordWriter {
 public:
  struct Ended {
    std::pair<uint32_t, uint32_t> key;
    uint64_t ticks_before = 0;
  };
  std::vector<Ended> ended;

  void AddTick(uint32_t, uint32_t, const core::Sample&, std::span<const core::Verdict>) override {
    ++ticks_;
  }
  void Add(v1::TimelineRecord, int64_t) override {}
  void EndEpoch(uint32_t vm, uint32_t epoch) override { ended.push_back({{vm, epoch}, ticks_}); }
  absl::Status Flush(const v1::ClockSnapshot&) override { return absl::OkStatus(); }

 private:
  uint64_t ticks_ = 0;
};

}  // namespace vcpulse::replay

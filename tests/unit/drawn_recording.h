#pragma once

// A timeline file drawn with letters, a tick of 100 ms each, so that what a check says of it can be
// worked out on paper.

#include <unistd.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::check {

inline constexpr int64_t kDrawnStart_ns = 5'000'000'000;
inline constexpr int64_t kDrawnTick_ns = 100'000'000;
inline constexpr int64_t kRealtime_ns = 1'767'323'045'000'000'000;  // at the start

// Letters of one vCPU, a tick each:
//   H S P U  a band (U: UNKNOWN, between the bands); h s p u: starved too
//   N        UNKNOWN(no-counters)    ?  no verdict
//   0..9     PRODUCTIVE with that IPC; S has 0.5, P 2, U 0.9
//   R        PRODUCTIVE, in the guest for half of the time; else all of it, but H: nothing
//   .        no sample: before the first one of an epoch, or a tick that was missed
// and of time:
//   [a]      the marker "a"          ^ %  another epoch begins, % without counters
//   ( )      the recording is paused, is resumed (with another epoch)    !  the VM ended
class DrawnRecording {
 public:
  struct Epoch {
    std::vector<uint32_t> vcpus = {0};
    std::vector<uint32_t> unopened{};
    bool degraded = false;
  };

  DrawnRecording() : DrawnRecording(Session()) {}
  explicit DrawnRecording(const v1::Session& session) {
    static int number = 0;
    path_ = ::testing::TempDir() + "/vcpulse_drawn_" + std::to_string(getpid()) + "_" +
            std::to_string(number++) + ".vpt";
    file_.open(path_, std::ios::binary | std::ios::trunc);
    writer_ = NewWriter({1});
    v1::TimelineRecord record;
    *record.mutable_session() = session;
    writer_->Add(record, now_ns_);
    AddClock();
  }
  ~DrawnRecording() { std::remove(path_.c_str()); }
  DrawnRecording(const DrawnRecording&) = delete;
  DrawnRecording& operator=(const DrawnRecording&) = delete;

  static v1::Session Session() {
    v1::Session session;
    session.set_stream_id(std::string(16, '\1'));
    session.set_host_name("host1");
    session.set_interval_ns(kDrawnTick_ns);
    session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
    session.set_max_hz(1e9);
    return session;
  }

  bool scheduler_times = true;
  uint64_t waited_percent = 0;  // of each tick, booked as run_delay
  int64_t read_ns = 0;          // how long each read takes

  // VM `vm` is called "guestN", N its number, unless it is named here before its first epoch.
  void Name(uint32_t vm, const std::string& name, const std::string& uuid = "") {
    names_[vm] = {name, uuid};
  }

  // Another epoch of a VM begins now; its first sample comes with its first letter.
  void Begin(uint32_t vm, const Epoch& epoch) {
    State& state = states_[vm];
    ++state.number;
    state.epoch = epoch;
    state.previous.reset();
    v1::TimelineRecord record;
    v1::VcpuSet& set = *record.mutable_vcpu_set();
    set.set_vm(vm);
    set.set_epoch(state.number);
    set.set_mono_ns(now_ns_);
    set.mutable_instance()->set_pid(1000 + vm);
    const bool named = names_.contains(vm);
    set.mutable_instance()->set_name(named ? names_[vm].first : "guest" + std::to_string(vm));
    set.mutable_instance()->set_uuid(named ? names_[vm].second : "");
    set.set_event_set(epoch.degraded ? "degraded" : "min");
    set.add_events(epoch.degraded ? "task-clock" : "cycles");
    if (!epoch.degraded) set.add_events("instructions");
    for (const uint32_t index : epoch.vcpus) set.add_vcpus()->set_index(index);
    for (const uint32_t index : epoch.unopened) {
      v1::UnopenedVcpu& vcpu = *set.add_unopened_vcpus();
      vcpu.set_index(index);
      vcpu.set_error(13);
      vcpu.set_reason("perf_event_paranoid is 3");
    }
    writer_->Add(record, now_ns_);
  }

  // VM 1 with vCPU 0.
  void Draw(const std::string& letters) {
    if (states_.empty()) {
      const bool degraded = letters.starts_with('%');
      Begin(1, {.degraded = degraded});
      return Draw(std::map<uint32_t, std::vector<std::string>>{
          {1, {degraded ? letters.substr(1) : letters}}});
    }
    Draw(std::map<uint32_t, std::vector<std::string>>{{1, {letters}}});
  }
  // Several vCPUs of VM 1.
  void Draw(const std::vector<std::string>& vcpus) {
    Draw(std::map<uint32_t, std::vector<std::string>>{{1, vcpus}});
  }
  // Several VMs with the letters of each of their vCPUs. What is not of a tick stands in the first
  // one's.
  void Draw(const std::map<uint32_t, std::vector<std::string>>& vms) {
    const std::string& lead = vms.begin()->second.front();
    size_t column = 0;
    for (size_t i = 0; i < lead.size(); ++i) {
      if (TakeTimeSign(vms.begin()->first, lead, i)) continue;
      for (const auto& [vm, vcpus] : vms) {
        std::string letters(1, lead[i]);
        if (vm != vms.begin()->first) letters = vcpus.front().substr(column, 1);
        for (size_t v = 1; v < vcpus.size(); ++v) letters += vcpus[v][column];
        if (letters.front() != '.') FirstSample(vm);
      }
      now_ns_ += kDrawnTick_ns;
      for (const auto& [vm, vcpus] : vms) {
        std::string letters(1, lead[i]);
        if (vm != vms.begin()->first) letters = vcpus.front().substr(column, 1);
        for (size_t v = 1; v < vcpus.size(); ++v) letters += vcpus[v][column];
        if (letters.front() != '.') Tick(vm, letters);
      }
      ++column;
    }
  }

  void Mark(const std::string& name, int64_t mono_ns) {
    v1::TimelineRecord record;
    record.mutable_marker()->set_name(name);
    record.mutable_marker()->set_mono_ns(mono_ns);
    writer_->Add(record, mono_ns);
  }
  void LifeCycle(uint32_t vm, v1::LifeCycle::Kind kind) {
    v1::TimelineRecord record;
    record.mutable_life_cycle()->set_vm(vm);
    record.mutable_life_cycle()->set_kind(kind);
    record.mutable_life_cycle()->set_mono_ns(now_ns_);
    writer_->Add(record, now_ns_);
  }
  // The ticks `first` to `last` of a VM are missing, and that is noticed now.
  void Gap(uint32_t vm, uint64_t first, uint64_t last, v1::Gap::Reason reason) {
    v1::TimelineRecord record;
    v1::Gap& gap = *record.mutable_gap();
    gap.set_vm(vm);
    gap.set_epoch(states_[vm].number);
    gap.set_first_tick(first);
    gap.set_last_tick(last);
    gap.set_mono_ns(now_ns_);
    gap.set_reason(reason);
    writer_->Add(record, now_ns_);
  }
  void Pass(int64_t ns) { now_ns_ += ns; }
  // A chunk of its own for what comes next; a lost one is never written.
  void Flush(bool lost = false) {
    losing_ = lost;
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns_);
    clock.set_realtime_ns(kRealtime_ns + now_ns_ - kDrawnStart_ns);
    EXPECT_TRUE(writer_->Flush(clock).ok());
    losing_ = false;
  }
  // A second recording in the same file.
  void BeginStream() {
    Flush();
    writer_ = NewWriter({2});
    v1::TimelineRecord record;
    *record.mutable_session() = Session();
    record.mutable_session()->set_stream_id(std::string(16, '\2'));
    writer_->Add(record, now_ns_);
  }

  int64_t now_ns() const { return now_ns_; }

  // The file, ended now and in order unless it was `killed`.
  std::string Finish(bool killed = false) {
    AddClock();
    if (!killed) {
      v1::TimelineRecord record;
      record.mutable_summary()->set_end_reason("duration");
      writer_->Add(record, now_ns_);
    }
    Flush();
    file_.close();
    return path_;
  }

 private:
  struct State {
    uint32_t number = 0;
    Epoch epoch{};
    std::optional<core::Sample> previous{};
  };

  std::unique_ptr<timeline::RecordWriter> NewWriter(timeline::StreamId id) {
    return timeline::NewChunkWriter(id, [this](std::span<const uint8_t> bytes) {
      if (losing_) return absl::OkStatus();
      file_.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
      return absl::OkStatus();
    });
  }

  void AddClock() {
    v1::TimelineRecord record;
    record.mutable_clock_snapshot()->set_mono_ns(now_ns_);
    record.mutable_clock_snapshot()->set_realtime_ns(kRealtime_ns + now_ns_ - kDrawnStart_ns);
    writer_->Add(record, now_ns_);
  }

  // Whether letters[i] is of time; `i` is moved to its last letter.
  bool TakeTimeSign(uint32_t vm, const std::string& letters, size_t& i) {
    Epoch same = states_[vm].epoch;
    switch (letters[i]) {
      case '[': {
        const size_t end = letters.find(']', i);
        Mark(letters.substr(i + 1, end - i - 1), now_ns_);
        i = end;
        return true;
      }
      case '^':
      case '%':
        same.degraded = letters[i] == '%';
        Begin(vm, same);
        return true;
      case '(':
        LifeCycle(0, v1::LifeCycle::KIND_RECORDING_PAUSED);
        return true;
      case ')':
        LifeCycle(0, v1::LifeCycle::KIND_RECORDING_RESUMED);
        Begin(vm, same);
        return true;
      case '!':
        LifeCycle(vm, v1::LifeCycle::KIND_VM_ENDED);
        return true;
      case ' ':
        return true;
      default:
        return false;
    }
  }

  core::Sample Stamped(size_t vcpus) const {
    core::Sample sample;
    sample.tick = static_cast<uint64_t>((now_ns_ - kDrawnStart_ns) / kDrawnTick_ns);
    sample.deadline_ns = sample.wake_ns = now_ns_;
    sample.vcpus.resize(vcpus);
    for (core::VcpuSample& vcpu : sample.vcpus) {
      vcpu.read_begin_ns = now_ns_;
      vcpu.read_end_ns = now_ns_ + read_ns;
      vcpu.has_scheduler_times = scheduler_times;
    }
    return sample;
  }

  void FirstSample(uint32_t vm) {
    State& state = states_.at(vm);
    if (state.previous) return;
    state.previous = Stamped(state.epoch.vcpus.size());
    const std::vector<core::Verdict> none(state.epoch.vcpus.size());
    writer_->AddTick(vm, state.number, *state.previous, none);
  }

  void Tick(uint32_t vm, const std::string& letters) {
    State& state = states_.at(vm);
    core::Sample sample = Stamped(state.epoch.vcpus.size());
    std::vector<core::Verdict> verdicts;
    for (size_t v = 0; v < sample.vcpus.size(); ++v) {
      core::VcpuSample& now = sample.vcpus[v];
      const core::VcpuSample& before = state.previous->vcpus[v];
      const auto elapsed_ns = static_cast<uint64_t>(now.read_begin_ns - before.read_begin_ns);
      const char letter = letters[v];
      uint64_t run_ns = letter == 'H' || letter == 'h' ? 0 : elapsed_ns;
      if (letter == 'R') run_ns /= 2;
      now.time_enabled_ns = before.time_enabled_ns + run_ns;
      now.time_running_ns = before.time_running_ns + run_ns;
      now.counts[0] = before.counts[0] + run_ns;  // 1 GHz
      if (!state.epoch.degraded) {
        now.counts[1] =
            before.counts[1] + static_cast<uint64_t>(IpcOf(letter) * static_cast<double>(run_ns));
      }
      if (scheduler_times) {
        now.run_ns = before.run_ns + run_ns;
        now.run_delay_ns = before.run_delay_ns + elapsed_ns * waited_percent / 100;
      }
      verdicts.push_back(VerdictOf(letter));
    }
    writer_->AddTick(vm, state.number, sample, verdicts);
    state.previous = std::move(sample);
  }

  static double IpcOf(char letter) {
    if (std::isdigit(static_cast<unsigned char>(letter))) return letter - '0';
    const char band = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    return band == 'S' ? 0.5 : band == 'U' ? 0.9 : 2;
  }

  static core::Verdict VerdictOf(char letter) {
    using core::Band;
    using core::Rule;
    core::Verdict verdict{.band = Band::kProductive, .rule = Rule::kIpcHigh};
    switch (std::toupper(static_cast<unsigned char>(letter))) {
      case 'H':
        verdict = {.band = Band::kHalted, .rule = Rule::kBlocked};
        break;
      case 'S':
        verdict = {.band = Band::kSpinning, .rule = Rule::kIpcLow};
        break;
      case 'U':
        verdict = {.band = Band::kUnknown, .rule = Rule::kBetweenBands};
        break;
      case 'N':
        verdict = {.band = Band::kUnknown, .rule = Rule::kNoCounters};
        break;
      case '?':
        return {};
      default:
        break;
    }
    verdict.raw_band = verdict.band;
    verdict.raw_rule = verdict.rule;
    verdict.starved = std::islower(static_cast<unsigned char>(letter)) != 0;
    return verdict;
  }

  std::string path_;
  std::ofstream file_;
  std::unique_ptr<timeline::RecordWriter> writer_;
  bool losing_ = false;
  int64_t now_ns_ = kDrawnStart_ns;
  std::map<uint32_t, State> states_;
  std::map<uint32_t, std::pair<std::string, std::string>> names_;
};

}  // namespace vcpulse::check

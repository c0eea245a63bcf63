// Writes what the queries of docs/queries.md are asked of: draw_fleet DIR makes DIR/HOST-BOOT.vpt,
// a week of three hosts that never were, in ticks of 10 s. The same bytes each time.
//   host1  `build` works from 01:00 to 03:00 and crowds `web` out; `mail` has little to do
//   host2  `database` spins; on Thursday at 03:00 the host gets another kernel, and it spins less
//   host3  `legacy` spins all day

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/timeline/writer.h"

namespace vcpulse {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr int64_t kTick_ns = 10 * kSecond_ns;
constexpr int64_t kHour_s = 3600;
constexpr int64_t kWeek_s = 7 * 24 * kHour_s;
constexpr int64_t kMonday_ns = 1'767'571'200 * kSecond_ns;  // 2026-01-05 00:00 UTC
constexpr int64_t kUpdate_s = 75 * kHour_s;                 // Thursday 03:00
constexpr int64_t kReboot_s = 240;
constexpr int64_t kUp_ns = 100 * kSecond_ns;  // CLOCK_MONOTONIC when the recording of a boot begins
constexpr double kGuestHz = 2.5e9;

// Of a hundred ticks, in how many a vCPU spins, and in how many it works; else it is halted. Of a
// tick in which it is not halted it waits so many percent for a CPU.
struct Habit {
  int spins = 0;
  int works = 0;
  int waits_percent = 0;
};

struct Boot {
  std::string kernel;
  int64_t begin_s = 0;  // after Monday
  int64_t end_s = kWeek_s;
};

struct Vm {
  std::string name;
  uint32_t vcpus = 1;
  std::function<Habit(const Boot& boot, int hour)> habit;  // of the day
};

struct Host {
  std::string name;
  std::string rack;
  std::vector<Boot> boots;
  std::vector<Vm> vms;
};

bool IsNight(int hour) { return hour == 1 || hour == 2; }
bool IsOfficeHour(int hour) { return hour >= 8 && hour < 18; }

std::vector<Host> Fleet() {
  const std::string kernel = "6.1.0-40-amd64";
  const std::string updated = "6.1.0-41-amd64";
  const Vm web{"web", 2, [](const Boot&, int hour) {
                 return Habit{2, IsOfficeHour(hour) ? 70 : 30, IsNight(hour) ? 35 : 1};
               }};
  const Vm build{"build", 4, [](const Boot&, int hour) {
                   return IsNight(hour) ? Habit{3, 95, 4} : Habit{0, 4, 1};
                 }};
  const Vm mail{"mail", 1, [](const Boot&, int) { return Habit{0, 12, 2}; }};
  const Vm database{"database", 2, [=](const Boot& boot, int hour) {
                      const int load = IsOfficeHour(hour) ? 60 : 25;
                      return boot.kernel == updated ? Habit{3, load, 1} : Habit{18, load, 3};
                    }};
  const Vm cache{"cache", 1, [](const Boot&, int) { return Habit{1, 50, 1}; }};
  const Vm legacy{"legacy", 1, [](const Boot&, int) { return Habit{62, 20, 1}; }};
  return {{"host1", "12", {{kernel}}, {web, build, mail}},
          {"host2",
           "12",
           {{kernel, 0, kUpdate_s}, {updated, kUpdate_s + kReboot_s}},
           {database, cache}},
          {"host3", "14", {{kernel}}, {legacy}}};
}

// The counters of one vCPU, as they grow.
class Vcpu {
 public:
  Vcpu() { sample_.has_scheduler_times = true; }

  // One tick with this share of it, in percent, spent waiting for a CPU.
  void Pass(core::Band band, int waits_percent, int64_t now_ns) {
    sample_.read_begin_ns = sample_.read_end_ns = now_ns;
    sample_.state = core::ThreadState::kNotRead;
    if (band == core::Band::kHalted) {
      sample_.state = core::ThreadState::kBlocked;
      return;
    }
    const uint64_t waited_ns = kTick_ns / 100 * static_cast<uint64_t>(waits_percent);
    const uint64_t ran_ns = kTick_ns - waited_ns;
    sample_.run_delay_ns += waited_ns;
    sample_.run_ns += ran_ns;
    sample_.time_enabled_ns += ran_ns;
    sample_.time_running_ns += ran_ns;
    const auto cycles = static_cast<uint64_t>(static_cast<double>(ran_ns) / 1e9 * kGuestHz);
    sample_.counts[0] += cycles;
    sample_.counts[1] += band == core::Band::kSpinning ? cycles / 2 : cycles / 10 * 16;
  }
  void Begin(int64_t now_ns) { sample_.read_begin_ns = sample_.read_end_ns = now_ns; }

  const core::VcpuSample& sample() const { return sample_; }

 private:
  core::VcpuSample sample_;
};

core::Verdict VerdictOf(core::Band band, bool starved) {
  core::Rule rule = core::Rule::kIpcHigh;
  if (band == core::Band::kHalted) rule = core::Rule::kBlocked;
  if (band == core::Band::kSpinning) rule = core::Rule::kTightLoop;
  return {.band = band,
          .rule = rule,
          .starved = starved,
          .confidence_pct = 95,
          .raw_band = band,
          .raw_rule = rule};
}

v1::TimelineRecord SessionOf(const Host& host, const Boot& boot, size_t number) {
  v1::TimelineRecord record;
  v1::Session& session = *record.mutable_session();
  session.set_stream_id(host.name + "-boot" + std::to_string(number) + "-0123");
  session.set_tool_version("0.1.0");
  session.set_host_name(host.name);
  session.set_agent_id(host.name);
  session.set_boot_id(host.name + "-boot-" + std::to_string(number));
  session.set_kernel_release(boot.kernel);
  session.set_machine("x86_64");
  session.set_interval_ns(kTick_ns);
  session.set_residency_method(v1::RESIDENCY_METHOD_MAX_FREQUENCY);
  session.set_max_hz(kGuestHz);
  v1::Label& label = *session.add_labels();
  label.set_key("rack");
  label.set_value(host.rack);
  return record;
}

v1::TimelineRecord VcpuSetOf(const Vm& vm, uint32_t number, int64_t now_ns) {
  v1::TimelineRecord record;
  v1::VcpuSet& set = *record.mutable_vcpu_set();
  set.set_vm(number);
  set.set_epoch(1);
  set.set_mono_ns(now_ns);
  set.mutable_instance()->set_pid(1000 + number);
  set.mutable_instance()->set_name(vm.name);
  set.set_classifier("evidence");
  set.add_events("cycles");
  set.add_events("instructions");
  for (uint32_t vcpu = 0; vcpu < vm.vcpus; ++vcpu) set.add_vcpus()->set_index(vcpu);
  return record;
}

class Recording {
 public:
  Recording(const Host& host, const Boot& boot, size_t number, const std::string& path)
      : host_(host),
        boot_(boot),
        file_(path, std::ios::binary),
        writer_(timeline::NewChunkWriter({static_cast<uint8_t>(number)},
                                         [this](std::span<const uint8_t> chunk) {
                                           file_.write(reinterpret_cast<const char*>(chunk.data()),
                                                       static_cast<std::streamsize>(chunk.size()));
                                           return absl::OkStatus();
                                         })) {
    writer_->Add(SessionOf(host, boot, number), kUp_ns);
    for (const Vm& vm : host.vms) {
      writer_->Add(VcpuSetOf(vm, NumberOf(vm), kUp_ns), kUp_ns);
      std::vector<Vcpu>& vcpus = vcpus_.emplace_back(vm.vcpus);
      for (Vcpu& vcpu : vcpus) vcpu.Begin(kUp_ns);
      AddSample(vm, 0, kUp_ns, std::vector<core::Verdict>(vm.vcpus));
    }
  }

  // False where the file cannot be written.
  bool Write() {
    constexpr uint64_t kTicksOfChunk = 180;
    const auto ticks = static_cast<uint64_t>((boot_.end_s - boot_.begin_s) * kSecond_ns / kTick_ns);
    int64_t now_ns = kUp_ns;
    for (uint64_t tick = 1; tick <= ticks; ++tick) {
      now_ns += kTick_ns;
      for (const Vm& vm : host_.vms) Pass(vm, tick, now_ns);
      if (tick % kTicksOfChunk == 0 && !Flush(now_ns)) return false;
    }
    v1::TimelineRecord record;
    record.mutable_summary()->set_end_reason("stopped");
    writer_->Add(record, now_ns);
    return Flush(now_ns);
  }

 private:
  uint32_t NumberOf(const Vm& vm) const {
    return static_cast<uint32_t>(&vm - host_.vms.data()) + 1;
  }

  bool Flush(int64_t now_ns) {
    v1::ClockSnapshot clock;
    clock.set_mono_ns(now_ns);
    clock.set_realtime_ns(kMonday_ns + boot_.begin_s * kSecond_ns + now_ns - kUp_ns);
    return writer_->Flush(clock).ok() && file_.good();
  }

  void Pass(const Vm& vm, uint64_t tick, int64_t now_ns) {
    const int64_t since_monday_s = boot_.begin_s + (now_ns - kUp_ns) / kSecond_ns - 1;
    const Habit habit = vm.habit(boot_, static_cast<int>(since_monday_s / kHour_s % 24));
    std::vector<core::Verdict> verdicts;
    for (Vcpu& vcpu : vcpus_[NumberOf(vm) - 1]) {
      const int drawn = Draw();
      core::Band band = core::Band::kHalted;
      if (drawn < habit.spins + habit.works) band = core::Band::kProductive;
      if (drawn < habit.spins) band = core::Band::kSpinning;
      vcpu.Pass(band, habit.waits_percent, now_ns);
      verdicts.push_back(VerdictOf(band, band != core::Band::kHalted && habit.waits_percent > 10));
    }
    AddSample(vm, tick, now_ns, verdicts);
  }

  void AddSample(const Vm& vm, uint64_t tick, int64_t now_ns,
                 const std::vector<core::Verdict>& verdicts) {
    core::Sample sample;
    sample.tick = tick;
    sample.deadline_ns = sample.wake_ns = now_ns;
    for (const Vcpu& vcpu : vcpus_[NumberOf(vm) - 1]) sample.vcpus.push_back(vcpu.sample());
    writer_->AddTick(NumberOf(vm), 1, sample, verdicts);
  }

  // xorshift64, of a hundred: the same everywhere.
  int Draw() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<int>(random_ % 100);
  }

  const Host& host_;
  const Boot& boot_;
  std::ofstream file_;
  std::unique_ptr<timeline::RecordWriter> writer_;
  std::vector<std::vector<Vcpu>> vcpus_;  // of each VM
  uint64_t random_ = 42;
};

}  // namespace
}  // namespace vcpulse

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: draw_fleet DIR\n", stderr);
    return 2;
  }
  size_t stream = 0;
  for (const vcpulse::Host& host : vcpulse::Fleet()) {
    for (size_t boot = 0; boot < host.boots.size(); ++boot) {
      const std::string path =
          std::string(argv[1]) + "/" + host.name + "-" + std::to_string(boot + 1) + ".vpt";
      if (!vcpulse::Recording(host, host.boots[boot], ++stream, path).Write()) {
        std::fprintf(stderr, "draw_fleet: cannot write %s\n", path.c_str());
        return 1;
      }
    }
  }
}

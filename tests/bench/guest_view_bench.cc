// What a recording at 1 kHz costs a guest: how much of its own work it does in a second, and how
// late its timer's interrupts come, beside none. On CPU 1 the guest, on CPU 0 vcpulse; in turns, so
// that what else the machine does hits all alike. tests/lab/lab_guestview_test.cc has a Linux
// guest.

#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvm/discovery/discovery.h"
#include "kvm/microguest/machine.h"
#include "tests/bench/record_to_disk.h"
#include "tests/kvm/qemu_guest.h"

extern "C" {
extern const char timer_guest[];
extern const char timer_guest_wait[];
extern const char timer_guest_end[];
}

namespace vcpulse::bench {
namespace {

constexpr absl::Duration kTurn = absl::Seconds(3);
constexpr std::array kReaders = {"none", "bpf", "read"};

void PinTo(pid_t tid, size_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(tid, sizeof(set), &set);
}

kvm::Vm Itself(const kvm::microguest::Machine& machine) {
  kvm::Vm vm;
  vm.pid = getpid();
  vm.name = "guest";
  const auto start_of = [](pid_t tid) {
    const auto text =
        kvm::ReadSmallFile(absl::StrCat("/proc/", getpid(), "/task/", tid, "/stat")).value_or("");
    const auto stat = kvm::ParseTaskStat(text);
    return stat ? stat->start_time_ticks : 0;
  };
  vm.start_time_ticks = start_of(vm.pid);
  kvm::Vcpu vcpu;
  vcpu.tid = machine.Tid(0);
  vcpu.found_by = kvm::FoundBy::kThreadName;
  vcpu.proof = kvm::Proof::kFd;
  vcpu.start_time_ticks = start_of(vcpu.tid);
  vm.vcpus.push_back(vcpu);
  return vm;
}

// A recording of `vm` at 1 kHz that goes on, by this reader ("none": there is none), until its end.
class RecordingBeside {
 public:
  RecordingBeside(const kvm::Vm& vm, const std::string& reader) : path_(TemporaryFile("g.vpt")) {
    if (reader == "none") return;
    pid_ = fork();
    if (pid_ == 0) {
      PinTo(0, 0);
      RecordToDisk({vm}, absl::Milliseconds(1), absl::Seconds(1), path_, reader, absl::Minutes(1));
      _exit(0);
    }
    absl::SleepFor(absl::Seconds(1));  // until it goes on
  }
  ~RecordingBeside() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove(path_);
  }
  RecordingBeside(const RecordingBeside&) = delete;
  RecordingBeside& operator=(const RecordingBeside&) = delete;

  // Whether it still is as it was asked for.
  bool GoesOn() const { return pid_ < 0 || waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  std::string path_;
  pid_t pid_ = -1;
};

// Turns of the guest's loop in a second, beside this reader. Nothing where one of them failed.
std::optional<double> TurnsBeside(kvm::microguest::Machine& machine, const std::string& reader) {
  const RecordingBeside recording(Itself(machine), reader);
  machine.Start(0, *kvm::microguest::FindProgram("loop"), ~uint64_t{0});
  const absl::Time begin = absl::Now();
  absl::SleepFor(kTurn);
  machine.Stop(0);
  const auto turns = machine.Wait(0, absl::Seconds(5));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  if (!turns.ok() || !recording.GoesOn()) return std::nullopt;
  return static_cast<double>(turns->turns) / seconds;
}

void TurnsOfAGuest(benchmark::State& state) {
  auto machine = kvm::microguest::Machine::Create(1);
  if (!machine.ok()) {
    state.SkipWithError(std::string(machine.status().message()).c_str());
    return;
  }
  PinTo((*machine)->Tid(0), 1);
  std::map<std::string, double> turns;
  for (auto _ : state) {
    for (const std::string reader : kReaders) {
      const std::optional<double> seen = TurnsBeside(**machine, reader);
      if (!seen) return state.SkipWithError(("a turn failed beside " + reader).c_str());
      turns[reader] += *seen;
    }
  }
  state.counters["bpf_to_none"] = turns["bpf"] / turns["none"];
  state.counters["read_to_none"] = turns["read"] / turns["none"];
}
BENCHMARK(TurnsOfAGuest)->Unit(benchmark::kSecond)->Iterations(3);

// The firmware of timer_guest.S; while it waits for its timer it is halted, or works.
std::string TimerGuest(bool works) {
  std::string code(timer_guest, timer_guest_end);
  if (works) code[static_cast<size_t>(timer_guest_wait - timer_guest)] = '\x90';
  return code;
}

double CyclesPerUs() {
  const int64_t begin_ns = MonotonicNow_ns();
  const uint64_t begin = __rdtsc();
  absl::SleepFor(absl::Milliseconds(100));
  const uint64_t cycles = __rdtsc() - begin;
  return static_cast<double>(cycles) * 1e3 / static_cast<double>(MonotonicNow_ns() - begin_ns);
}

// How late its timer's interrupts came beside this reader, us, into `late_us`. False where one of
// them failed.
bool TimersBeside(const kvm_tests::QemuGuest& guest, const kvm::Vm& vm, const std::string& reader,
                  std::vector<double>& late_us) {
  static const double cycles_per_us = CyclesPerUs();
  const RecordingBeside recording(vm, reader);
  constexpr size_t kBytes = sizeof(uint32_t);
  const size_t before = guest.DebugOutput().size() / kBytes * kBytes;
  absl::SleepFor(kTurn);
  const std::string output = guest.DebugOutput();
  for (size_t at = before; at + kBytes <= output.size(); at += kBytes) {
    uint32_t cycles = 0;
    std::memcpy(&cycles, output.data() + at, kBytes);
    late_us.push_back(cycles / cycles_per_us);
  }
  return recording.GoesOn() && output.size() > before;
}

// range(0): whether the guest works while it waits for its timer.
void TimersOfAGuest(benchmark::State& state) {
  const auto guest =
      kvm_tests::QemuGuest::Start({.name = "timers",
                                   .debug_threads = true,
                                   .code = TimerGuest(state.range(0) != 0),
                                   .more = {"-cpu", "qemu64,+x2apic,+tsc-deadline"}});
  const auto vm = guest.ok() ? kvm::Discovery("/").FindByPid(guest->pid())
                             : absl::StatusOr<kvm::Vm>(guest.status());
  if (!vm.ok()) {
    state.SkipWithError(std::string(vm.status().message()).c_str());
    return;
  }
  for (const kvm::Vcpu& vcpu : vm->vcpus) PinTo(vcpu.tid, 1);
  std::map<std::string, std::vector<double>> late_us;
  for (auto _ : state) {
    for (const std::string reader : kReaders) {
      if (TimersBeside(*guest, *vm, reader, late_us[reader])) continue;
      return state.SkipWithError(("a turn failed beside " + reader).c_str());
    }
  }
  for (auto& [reader, values] : late_us) {
    std::ranges::sort(values);
    const auto quantile = [&values = values](double q) {
      return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
    };
    state.counters[reader + "_p50_us"] = quantile(0.5);
    state.counters[reader + "_p99_us"] = quantile(0.99);
    state.counters[reader + "_timers"] = static_cast<double>(values.size());
  }
}
BENCHMARK(TimersOfAGuest)
    ->ArgName("works")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kSecond)
    ->Iterations(3);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

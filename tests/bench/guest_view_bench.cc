// What a guest has of a recording at 1 kHz: how much of its own work it does in a second, beside
// none. On CPU 1 a microguest, on CPU 0 vcpulse; in turns, so that what else the machine does hits
// all alike.

#include <benchmark/benchmark.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "kvm/microguest/machine.h"
#include "tests/bench/record_to_disk.h"

namespace vcpulse::bench {
namespace {

constexpr absl::Duration kTurn = absl::Seconds(3);

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

// Turns of the guest's loop in a second, beside this reader at 1 kHz; "none": without a recording.
double TurnsBeside(kvm::microguest::Machine& machine, const std::string& reader) {
  const std::string path = TemporaryFile("g.vpt");
  pid_t recorder = -1;
  if (reader != "none") {
    const kvm::Vm vm = Itself(machine);
    recorder = fork();
    if (recorder == 0) {
      PinTo(0, 0);
      RecordToDisk({vm}, absl::Milliseconds(1), absl::Seconds(1), path, reader);
      _exit(0);
    }
    absl::SleepFor(absl::Seconds(1));  // until it goes on
  }
  machine.Start(0, *kvm::microguest::FindProgram("loop"), ~uint64_t{0});
  const absl::Time begin = absl::Now();
  absl::SleepFor(kTurn);
  machine.Stop(0);
  const auto turns = machine.Wait(0, absl::Seconds(5));
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  if (recorder > 0) {
    kill(recorder, SIGKILL);
    waitpid(recorder, nullptr, 0);
  }
  std::filesystem::remove(path);
  return turns.ok() ? static_cast<double>(turns->turns) / seconds : 0;
}

void TurnsOfAGuest(benchmark::State& state) {
  auto machine = kvm::microguest::Machine::Create(1);
  if (!machine.ok()) {
    state.SkipWithError(std::string(machine.status().message()).c_str());
    return;
  }
  PinTo((*machine)->Tid(0), 1);
  double none = 0;
  double bpf = 0;
  double read = 0;
  for (auto _ : state) {
    none += TurnsBeside(**machine, "none");
    bpf += TurnsBeside(**machine, "bpf");
    read += TurnsBeside(**machine, "read");
  }
  state.counters["bpf_to_none"] = bpf / none;
  state.counters["read_to_none"] = read / none;
}
BENCHMARK(TurnsOfAGuest)->Unit(benchmark::kSecond)->Iterations(3);

}  // namespace
}  // namespace vcpulse::bench

BENCHMARK_MAIN();

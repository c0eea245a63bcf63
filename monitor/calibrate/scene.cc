#include "monitor/calibrate/scene.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/microguest/guest_memory.h"

namespace vcpulse::calibrate {
namespace {

using kvm::microguest::FindProgram;
using kvm::microguest::Machine;
using kvm::microguest::Program;
using kvm::microguest::Turns;

constexpr uint64_t kForEver = ~uint64_t{0};
constexpr absl::Duration kPatience = absl::Seconds(10);  // for a program to end
constexpr absl::Duration kBurstPeriod = absl::Milliseconds(20);
constexpr int kDuties[] = {1, 2, 5, 10, 25, 50};  // percent

// Runs the program until `end` or `stop`; what the first vCPU did.
absl::StatusOr<Turns> RunUntil(Machine& machine, const Program& program, const Deadline& end,
                               const absl::Notification& stop) {
  for (size_t i = 0; i < program.vcpus; ++i) machine.Start(i, program, kForEver);
  stop.WaitForNotificationWithTimeout(end.left());
  for (size_t i = 0; i < program.vcpus; ++i) machine.Stop(i);
  std::optional<Turns> first;
  absl::Status status;
  for (size_t i = 0; i < program.vcpus; ++i) {
    const auto did = machine.Wait(i, kPatience);
    status.Update(did.status());
    if (did.ok() && !first) first = *did;
  }
  if (!status.ok()) return status;
  return *first;
}

}  // namespace

std::vector<Scene> Scenes() {
  std::vector<Scene> scenes;
  for (const Program& program : kvm::microguest::Programs()) {
    Scene scene{
        .name = std::string(program.name), .what = std::string(program.what), .program = &program};
    // How soon a halt is found can be told only of a vCPU that was busy.
    if (program.truth == kvm::microguest::Truth::kHalted) scene.before = FindProgram("loop");
    if (program.name != "chase") {
      scenes.push_back(std::move(scene));
      continue;
    }
    for (const auto& [suffix, bytes] :
         {std::pair("64k", 64 << 10), std::pair("8m", 8 << 20), std::pair("256m", 256 << 20)}) {
      Scene sized = scene;
      absl::StrAppend(&sized.name, "-", suffix);
      sized.chain_bytes = static_cast<size_t>(bytes);
      scenes.push_back(std::move(sized));
    }
  }
  const Program* const loop = FindProgram("loop");
  for (const int percent : kDuties) {
    if (loop == nullptr) break;
    scenes.push_back({.name = absl::StrCat("duty-", percent),
                      .what = absl::StrCat("an empty loop for ", percent, "% of the time"),
                      .program = loop,
                      .duty = percent / 100.0});
  }
  return scenes;
}

absl::Status Try(Machine& machine, const Scene& scene) {
  constexpr uint64_t kFewTurns = 20;
  if (scene.chain_bytes > machine.memory().data_bytes()) {
    return absl::ResourceExhaustedError("it needs 1 GiB of available memory");
  }
  constexpr size_t kShortChain = 4096;
  if (scene.chain_bytes > 0) machine.memory().ChainData(kShortChain);
  const bool sleeps =
      scene.program->truth == kvm::microguest::Truth::kHalted && !scene.program->wakes;
  const Program& program = sleeps ? *scene.before : *scene.program;
  for (size_t i = 0; i < program.vcpus; ++i) machine.Start(i, program, kFewTurns);
  absl::Status status;
  for (size_t i = 0; i < program.vcpus; ++i) status.Update(machine.Wait(i, kPatience).status());
  return status;
}

absl::StatusOr<std::vector<std::string>> LeaveOut(
    std::vector<Scene>& scenes, const std::function<absl::Status(const Scene&)>& tried) {
  std::vector<std::string> left_out;
  std::vector<Scene> kept;
  for (Scene& scene : scenes) {
    const absl::Status status = tried(scene);
    if (status.ok()) {
      kept.push_back(std::move(scene));
      continue;
    }
    const std::string why = absl::StrCat(scene.name, ": ", status.message());
    const bool cannot = absl::IsUnimplemented(status) || absl::IsResourceExhausted(status);
    if (!cannot) return absl::UnavailableError(why);
    left_out.push_back(why);
  }
  scenes = std::move(kept);
  if (scenes.empty()) return absl::UnavailableError("this KVM runs none of the guests");
  return left_out;
}

absl::StatusOr<Played> Play(Machine& machine, const Scene& scene, absl::Duration length,
                            absl::Duration rest,
                            const std::function<void(const std::string& name)>& begins,
                            const absl::Notification& stop) {
  if (scene.chain_bytes > 0) {
    begins("prepare");  // ChainData takes a while: keep it out of the phase of the scene before
    machine.memory().ChainData(scene.chain_bytes);
  }
  if (scene.before != nullptr) {
    begins(std::string(scene.before->name));
    const auto did = RunUntil(machine, *scene.before, Deadline(length / 2), stop);
    if (!did.ok()) return did.status();
  }
  begins(scene.name);
  Played played{.begin_ns = MonotonicNow_ns()};
  const Deadline end(length);
  while (!end.over() && !stop.HasBeenNotified()) {
    const Deadline period(std::min(kBurstPeriod, end.left()));
    const auto did = RunUntil(machine, *scene.program,
                              scene.duty ? Deadline(kBurstPeriod * *scene.duty) : end, stop);
    if (!did.ok()) return did.status();
    played.turns += did->turns;
    played.inside_ns += did->inside_ns;
    if (scene.duty) absl::SleepFor(period.left());
  }
  played.end_ns = MonotonicNow_ns();
  if (stop.WaitForNotificationWithTimeout(rest)) return absl::CancelledError("stopped");
  return played;
}

}  // namespace vcpulse::calibrate

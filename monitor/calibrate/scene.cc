#include "monitor/calibrate/scene.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kvm/base/clock.h"
#include "kvm/microguest/guest_memory.h"

namespace vcpulse::calibrate {
namespace {

using kvm::microguest::FindProgram;
using kvm::microguest::Machine;
using kvm::microguest::Program;

constexpr uint64_t kForEver = ~uint64_t{0};
constexpr absl::Duration kPatience = absl::Seconds(10);  // for a program to end
constexpr absl::Duration kBurstPeriod = absl::Milliseconds(20);
constexpr int kDuties[] = {1, 2, 5, 10, 25, 50};  // percent

// Runs the program until `end` or `stop`; the turns that the first vCPU made.
absl::StatusOr<uint64_t> RunUntil(Machine& machine, const Program& program, const Deadline& end,
                                  const absl::Notification& stop) {
  for (size_t i = 0; i < program.vcpus; ++i) machine.Start(i, program, kForEver);
  stop.WaitForNotificationWithTimeout(end.left());
  for (size_t i = 0; i < program.vcpus; ++i) machine.Stop(i);
  std::optional<uint64_t> turns;
  absl::Status status;
  for (size_t i = 0; i < program.vcpus; ++i) {
    const auto did = machine.Wait(i, kPatience);
    status.Update(did.status());
    if (did.ok() && !turns) turns = did->turns;
  }
  if (!status.ok()) return status;
  return *turns;
}

}  // namespace

std::vector<Scene> Scenes() {
  std::vector<Scene> scenes;
  for (const Program& program : kvm::microguest::Programs()) {
    Scene scene{
        .name = std::string(program.name), .what = std::string(program.what), .program = &program};
    if (program.name != "chase") {
      scenes.push_back(std::move(scene));
      continue;
    }
    for (const auto& [suffix, bytes] : {std::pair("64k", 64 << 10), std::pair("8m", 8 << 20)}) {
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

absl::StatusOr<Played> Play(Machine& machine, const Scene& scene, absl::Duration length,
                            absl::Duration rest, const absl::Notification& stop) {
  if (scene.chain_bytes > 0) machine.memory().ChainData(scene.chain_bytes);
  auto* const shared = machine.memory().At<uint64_t>(kvm::microguest::kShared);
  shared[0] = shared[1] = 0;
  Played played{.begin_ns = MonotonicNow_ns()};
  const Deadline end(length);
  while (!end.over() && !stop.HasBeenNotified()) {
    const Deadline period(std::min(kBurstPeriod, end.left()));
    const auto turns = RunUntil(machine, *scene.program,
                                scene.duty ? Deadline(kBurstPeriod * *scene.duty) : end, stop);
    if (!turns.ok()) return turns.status();
    played.turns += *turns;
    if (scene.duty) absl::SleepFor(period.left());
  }
  played.end_ns = MonotonicNow_ns();
  if (stop.WaitForNotificationWithTimeout(rest)) return absl::CancelledError("stopped");
  return played;
}

}  // namespace vcpulse::calibrate

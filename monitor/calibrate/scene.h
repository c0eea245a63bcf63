#pragma once

// monitor/calibrate measures how right the bands are on this very host: guests of known truth
// (kvm/microguest) are recorded as any VM is, and what they did is held against what was said of
// them. docs/accuracy.md has the method.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "kvm/microguest/machine.h"
#include "kvm/microguest/program.h"

namespace vcpulse::calibrate {

// How many vCPUs the machine needs; programs of one run on the first.
inline constexpr size_t kVcpus = 2;

// A program for a while.
struct Scene {
  std::string name;  // stable: the program's, or "duty-25"
  std::string what;  // for people
  const kvm::microguest::Program* program = nullptr;
  const kvm::microguest::Program* before = nullptr;  // runs just before it begins
  size_t chain_bytes = 0;                            // of a chain of pointers
  std::optional<double> duty;  // the share of time that it runs, in bursts; nothing: all of it
};

// All of them: each program, then shares of time. Empty where there is no code for this CPU.
std::vector<Scene> Scenes();

// A few turns of its program, or, of one that sleeps, of the one before it; for an idle machine.
// Errors: of Machine::Wait; ResourceExhausted where the machine has less memory than it takes.
absl::Status Try(kvm::microguest::Machine& machine, const Scene& scene);

// Takes those out that cannot be played here, Unimplemented or ResourceExhausted by `tried`;
// "NAME: WHY" of each. Unavailable with its name where one fails in another way, or none is
// left: the guests of this host are not to be relied on.
absl::StatusOr<std::vector<std::string>> LeaveOut(
    std::vector<Scene>& scenes, const std::function<absl::Status(const Scene&)>& tried);

// What came of it.
struct Played {
  int64_t begin_ns = 0;  // CLOCK_MONOTONIC
  int64_t end_ns = 0;
  uint64_t turns = 0;     // of the first vCPU, by its own count
  int64_t inside_ns = 0;  // of it, in KVM_RUN: by the host's clock
};

// Plays it for so long, and then nothing for `rest`. `begins` is called with what begins: the
// scene, or the program before it. Errors: Cancelled, at once, where `stop` was notified; of
// Machine::Wait.
absl::StatusOr<Played> Play(kvm::microguest::Machine& machine, const Scene& scene,
                            absl::Duration length, absl::Duration rest,
                            const std::function<void(const std::string& name)>& begins,
                            const absl::Notification& stop);

}  // namespace vcpulse::calibrate

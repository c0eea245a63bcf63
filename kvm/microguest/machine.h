#pragma once

#include <linux/kvm.h>
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/base/fd.h"
#include "kvm/microguest/guest_memory.h"
#include "kvm/microguest/program.h"

namespace vcpulse::kvm::microguest {

// Whether KVM may take a PAUSE itself where a vCPU spins for long (pause-loop exiting, x86). Such a
// PAUSE does not retire in the guest.
enum class PauseExits { kAsForAnyVm, kNone };

struct MachineOptions {
  PauseExits pause_exits = PauseExits::kAsForAnyVm;
  size_t data_bytes = kDataBytes;  // see GuestMemory
};

// A VM of this process: vCPUs with threads of their own, memory, and no device. The threads are
// named as QEMU names them ("CPU 0/KVM"), so that discovery finds them like those of any VM. They
// have few system calls and no new privileges, where the kernel has seccomp (sandbox.h). All of it
// ends with the process, however that ends.
//
// One thread may use it; the kick of a vCPU takes the signal SIGRTMIN of this process, and vCPU
// threads take no other one.
class Machine {
 public:
  // Errors, each with what to do: PermissionDenied and NotFound of /dev/kvm; Unimplemented on other
  // architectures than x86-64 and arm64; what KVM refused; ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<Machine>> Create(size_t vcpus,
                                                         const MachineOptions& options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  size_t vcpus() const { return vcpus_.size(); }
  pid_t Tid(size_t vcpu) const;
  const GuestMemory& memory() const { return memory_; }

  // Begins a program on this vCPU; it ends after so many turns. The first one of an idle machine
  // finds the shared words 0. A vCPU that is not idle goes on with what it does.
  void Start(size_t vcpu, const Program& program, uint64_t turns);
  // The same with something that the thread does outside the guest: with the few system calls that
  // it has (sandbox.h), until it returns.
  void StartOnHost(size_t vcpu, std::function<void()> work);

  // Has a program end at its next turn, or out of its halt.
  void Stop(size_t vcpu);

  // What it did, once it is idle. Errors: DeadlineExceeded where it is not after `patience`, and is
  // stopped by force; Unimplemented where KVM could not emulate an instruction of the guest
  // (seen with vectors); Internal where the guest ended in another way than its program does.
  absl::StatusOr<Turns> Wait(size_t vcpu, absl::Duration patience);

 private:
  struct Vcpu {
    Vcpu() = default;
    ~Vcpu();
    Vcpu(const Vcpu&) = delete;
    Vcpu& operator=(const Vcpu&) = delete;

    Fd fd;
    Fd statistics;  // what KVM counts of it, for others to take (kvm/statistics); none before 5.14
    kvm_run* run = nullptr;
    size_t run_bytes = 0;
    pid_t tid = 0;
    std::mutex mutex;
    std::condition_variable changed;
    std::function<absl::Status()> job;  // under mutex, as the following
    bool ends = false;
    std::optional<absl::Status> done;  // nothing: it is not idle
    bool halts = false;                // the program that runs does
    int64_t inside_ns = 0;             // of the last program; its thread's until it is idle
    std::atomic<bool> leaves{false};   // out of the guest, at once
    std::thread thread;
  };

  Machine(Fd kvm, Fd vm, GuestMemory memory);
  absl::Status AddVcpu(size_t index);
  static void Live(Vcpu& vcpu, size_t index);
  static absl::Status Run(Vcpu& vcpu, uint64_t entry, uint64_t mailbox);
  void Post(size_t index, bool halts, uint64_t turns, std::function<absl::Status()> job);
  bool IsIdle() const;
  static void Kick(Vcpu& vcpu);

  Fd kvm_;
  Fd vm_;
  GuestMemory memory_;
  std::vector<std::unique_ptr<Vcpu>> vcpus_;
};

}  // namespace vcpulse::kvm::microguest

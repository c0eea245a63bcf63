#pragma once

#include <sys/types.h>

#include <string>

namespace vcpulse::kvm_tests {

// A VMM of its own process with real KVM descriptors and a thread `vcpuN` for each vCPU, which
// waits outside KVM_RUN: what QEMU never does, a vCPU thread that ends by itself, it does on
// demand. Killed with its object. The test must have one thread when it starts it.
class TinyVmm {
 public:
  // Two vCPUs. pid() is -1 where KVM cannot be had.
  TinyVmm();
  TinyVmm(const TinyVmm&) = delete;
  TinyVmm& operator=(const TinyVmm&) = delete;
  ~TinyVmm();

  pid_t pid() const { return pid_; }
  // The thread of a vCPU, by its name; -1 without.
  pid_t Tid(int vcpu) const;

  // The thread of this vCPU ends, or begins (again). Returns once it has.
  void EndThread(int vcpu);
  void BeginThread(int vcpu);

 private:
  void Command(char what, int vcpu) const;

  pid_t pid_ = -1;
  int commands_ = -1;
  int answers_ = -1;
};

}  // namespace vcpulse::kvm_tests

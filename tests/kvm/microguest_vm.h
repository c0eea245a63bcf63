#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {

// A VM with real KVM vCPUs that starts and ends much faster than QEMU: a microguest in a process of
// its own. Its vCPUs are halted. No QMP, no unplug. Killed with its object.
class MicroguestVm {
 public:
  // Waits until its vCPUs run. Errors: with what it said.
  static absl::StatusOr<MicroguestVm> Start(const std::string& name, int vcpus);

  pid_t pid() const { return process_->pid(); }

 private:
  explicit MicroguestVm(std::unique_ptr<RunningProgram> process) : process_(std::move(process)) {}

  std::unique_ptr<RunningProgram> process_;
};

}  // namespace vcpulse::kvm_tests

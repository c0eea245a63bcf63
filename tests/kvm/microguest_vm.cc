#include "tests/kvm/microguest_vm.h"

#include "absl/strings/str_cat.h"

namespace vcpulse::kvm_tests {

absl::StatusOr<MicroguestVm> MicroguestVm::Start(const std::string& name, int vcpus) {
  auto process = std::make_unique<RunningProgram>(std::vector<std::string>{
      VCPULSE_MICROGUEST_PROCESS, "halt", absl::StrCat(vcpus), "-name", name});
  const absl::Time deadline = absl::Now() + kLong;
  while (process->SoFar().out != "up\n") {
    if (absl::Now() > deadline || !process->SoFar().err.empty()) {
      return absl::UnavailableError(absl::StrCat("no microguest: ", process->SoFar().err));
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  return MicroguestVm(std::move(process));
}

}  // namespace vcpulse::kvm_tests

#include "kvm/microguest/architecture.h"

namespace vcpulse::kvm::microguest {

unsigned long VmType(int) { return 0; }
absl::Status PrepareVm(int, const GuestMemory&, bool) {
  return absl::UnimplementedError("there are no guest programs for this architecture");
}
absl::Status PrepareVcpu(int, int, int) { return absl::OkStatus(); }
absl::Status SetRegisters(int, uint64_t, uint64_t) { return absl::OkStatus(); }
bool HasFinished(const kvm_run&) { return false; }

}  // namespace vcpulse::kvm::microguest

// In place of bpf_keeper.cc where vcpulse is built without libbpf.

#include "absl/status/status.h"
#include "kvm/bpf/bpf_keeper.h"

namespace vcpulse::kvm {

absl::StatusOr<std::unique_ptr<ThreadKeeper>> LoadBpfKeeper(const std::string&) {
  return absl::UnimplementedError("this vcpulse was built without libbpf or clang");
}

}  // namespace vcpulse::kvm

#pragma once

// The binary statistics of one vCPU as KVM keeps them behind a descriptor (Documentation/virt/kvm/
// api.rst, 4.131 KVM_GET_STATS_FD). Pure: bytes in, places out.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::kvm {

// Where the values of a file are.
struct KvmStatsLayout {
  struct Value {
    std::string name;
    size_t offset = 0;  // from the beginning of the file: eight bytes
  };

  std::string id;             // "kvm-PID/vcpu-N"
  std::vector<Value> values;  // single cumulative ones, in the order of the file
};

// A file is longer than this on no kernel.
inline constexpr size_t kLongestKvmStats = 256 << 10;

// `file` is all of it. Errors: DataLoss where it is not such a file.
absl::StatusOr<KvmStatsLayout> ParseKvmStatsLayout(std::span<const uint8_t> file);

// N of "kvm-PID/vcpu-N"; nothing for another id, such as that of a whole VM.
std::optional<int> VcpuIdOf(std::string_view id);

}  // namespace vcpulse::kvm

// The binary statistics of KVM: every place that is found lies within the file.
#include <cstdint>
#include <span>

#include "kvm/statistics/kvm_stats_file.h"
#include "tests/fuzz/checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using vcpulse::fuzz::Check;
  const auto layout = vcpulse::kvm::ParseKvmStatsLayout(std::span(data, size));
  if (!layout.ok()) return 0;
  for (const auto& value : layout->values) Check(value.offset <= size && size - value.offset >= 8);
  const auto vcpu = vcpulse::kvm::VcpuIdOf(layout->id);
  Check(!vcpu || *vcpu >= 0);
  return 0;
}

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vcpulse::kvm {

// Which CPU model this host has. x86: what CPUID says, as /proc/cpuinfo gives it. arm64: the MIDR.
struct CpuIdentity {
  // "GenuineIntel", "AuthenticAMD"; arm64: "0x41" (the implementer); else empty
  std::string vendor;
  uint32_t family = 0;    // x86
  uint32_t model = 0;     // x86: model; arm64: part number
  uint32_t stepping = 0;  // x86: stepping; arm64: variant << 4 | revision

  bool operator==(const CpuIdentity&) const = default;
};

// The first processor of a /proc/cpuinfo. Pure.
CpuIdentity ParseCpuIdentity(std::string_view cpuinfo);

// Of the first CPU (hybrid and big.LITTLE hosts have others too). `root` as in Discovery. What
// could not be read is left empty.
CpuIdentity ReadCpuIdentity(const std::string& root);

}  // namespace vcpulse::kvm

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvm/host.h"

namespace vcpulse::profile {

// Both ends inclusive.
struct CodeRange {
  uint32_t from = 0;
  uint32_t to = 0;

  bool operator==(const CodeRange&) const = default;
};

// The CPUs that a built-in profile is for.
struct CpuMatch {
  std::vector<std::string> vendors;  // as in kvm::CpuIdentity; "arm64": any implementer
  uint32_t family = 0;               // x86
  std::vector<CodeRange> models;     // x86: models; arm64: parts. Empty: all of the vendor
  std::vector<CodeRange> steppings;  // x86. Empty: all

  bool IsGeneric() const { return models.empty(); }
  bool Matches(const kvm::CpuIdentity& cpu) const;
  // "GenuineIntel family 6 model 0x55 stepping 5-7", for people.
  std::string ToText() const;

  bool operator==(const CpuMatch&) const = default;
};

// Whether this vendor's models are numbered within families: not on arm64, which has parts.
bool HasFamilies(const std::string& vendor);

}  // namespace vcpulse::profile

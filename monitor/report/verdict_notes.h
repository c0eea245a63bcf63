#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "monitor/report/vcpu_table.h"

namespace vcpulse::report {

// vCPUs named in one note; --json has all of them.
inline constexpr size_t kListed = 8;

// Of the verdicts of these VMs: why some were UNKNOWN and of which vCPUs, and how sure those were
// that say so. `vcpu`: of the vCPUs of this index alone. `indent` begins each note. Empty where
// there is nothing to say.
std::string RenderVerdictNotes(const Vms& vms, std::optional<uint32_t> vcpu, const char* indent);

}  // namespace vcpulse::report

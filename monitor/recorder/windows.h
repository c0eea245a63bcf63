#pragma once

// The kinds of triggered windows.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/competitors/competitor_sampler.h"
#include "kvm/hotspots/address_sampler.h"
#include "kvm/hotspots/guest_code.h"
#include "monitor/recorder/triggered_windows.h"

namespace vcpulse::recorder {

// Opens a sampler of the only vCPU of this VM. Errors: why none can be.
using OpenAddresses =
    std::function<absl::StatusOr<std::unique_ptr<kvm::AddressSampler>>(const kvm::Vm& vm)>;
using OpenCompetitors =
    std::function<absl::StatusOr<std::unique_ptr<kvm::CompetitorSampler>>(const kvm::Vm& vm)>;

// Reads the code around these addresses, as a vCPU (cpu-index) sees it.
using ReadCode = std::function<absl::StatusOr<std::vector<kvm::GuestCode>>(
    const kvm::Vm& vm, int vcpu, std::span<const uint64_t> addresses)>;

// The same, but a VM that did not answer is left in peace for a minute: the caller waits with it.
ReadCode PatientCodeReader(ReadCode read, int64_t (*now_ns)());

// Where its code is: a record HotAddresses each. `read_code` is asked for that of the hottest
// places when the window ends; empty: none is read.
TriggeredWindows::Open HotAddressWindows(OpenAddresses open, ReadCode read_code);
// Who had its CPU: a record Competitors each.
TriggeredWindows::Open CompetitorWindows(OpenCompetitors open);

}  // namespace vcpulse::recorder

#pragma once

// The kinds of triggered windows.

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kvm/competitors/competitor_sampler.h"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/recorder/triggered_windows.h"

namespace vcpulse::recorder {

// Opens a sampler of the only vCPU of this VM. Errors: why none can be.
using OpenAddresses =
    std::function<absl::StatusOr<std::unique_ptr<kvm::AddressSampler>>(const kvm::Vm& vm)>;
using OpenCompetitors =
    std::function<absl::StatusOr<std::unique_ptr<kvm::CompetitorSampler>>(const kvm::Vm& vm)>;

// Where its code is: a record HotAddresses each.
TriggeredWindows::Open HotAddressWindows(OpenAddresses open);
// Who had its CPU: a record Competitors each.
TriggeredWindows::Open CompetitorWindows(OpenCompetitors open);

}  // namespace vcpulse::recorder

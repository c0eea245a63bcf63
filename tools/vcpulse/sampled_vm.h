#pragma once

// VMs whose code `vcpulse hotspots` samples now.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/hotspots/address_sampler.h"
#include "kvm/vm.h"
#include "monitor/hotspots/hotspots.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::tools {

// One VM while it is sampled.
struct SampledVm {
  kvm::Vm vm;
  std::unique_ptr<kvm::AddressSampler> sampler;
  bool goes_on = true;
  double seconds = 0;  // that it was sampled
};

std::string LabelOf(const kvm::Vm& vm);  // "VM web (PID 77)"

// Opens those that can be; says why another one cannot. Errors: of the only one, or of the first
// where none can be.
absl::StatusOr<std::vector<SampledVm>> OpenSamplers(const std::vector<kvm::Vm>& vms,
                                                    const kvm::AddressSamplerOptions& options);

// For so long, or until a signal. A VM that ends, or does not answer, keeps what it has.
absl::Status Sample(std::vector<SampledVm>& all, absl::Duration duration, const std::string& root);

// What its vCPUs were sampled in, with names of `kernel`: its VM's, moved to where it was loaded if
// code that is read from the guest (`guest_code`) tells that. What cannot be had is said.
std::vector<hotspots::VcpuHotspots> HotspotsOf(const SampledVm& one,
                                               const hotspots::GuestKernel& kernel, bool guest_code,
                                               bool callers);

}  // namespace vcpulse::tools

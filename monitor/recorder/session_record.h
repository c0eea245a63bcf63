#pragma once

// Builds the records that describe a recording: Session, VcpuSet, VmInstance, ClockSnapshot.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/events/pmu.h"
#include "kvm/host.h"
#include "kvm/vm.h"
#include "monitor/core/classify.h"
#include "monitor/core/profile.h"
#include "monitor/core/residency.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::recorder {

// What this host is called among many (v1::Session has the rules).
struct HostIdentity {
  struct Label {
    std::string key;
    std::string value;
  };
  std::string agent_id;       // empty: not said
  std::vector<Label> labels;  // by key, each key once
};

// What residency can be divided by on this host, as found by trying.
struct ResidencyBasisFound {
  std::vector<core::ResidencyBasis> bases = {{}};  // one per core PMU
  v1::ResidencyMethod method = v1::RESIDENCY_METHOD_TIME_ENABLED;
  std::string no_counters_reason;  // why the cycle counter cannot be used; empty where it can
};

// Counts on the calling thread for about 10 ms: see kvm::ProbeCycleHz. Opens nothing where KVM runs
// with a mediated vPMU, unless forced.
ResidencyBasisFound FindResidencyBasis(kvm::PerfEvents& perf, const std::string& root,
                                       std::span<const kvm::Pmu> core_pmus,
                                       bool force_mediated_vpmu);

// What the caller knows beside the host's facts.
struct SessionFacts {
  timeline::StreamId stream_id{};
  std::string tool_version;
  HostIdentity identity;
  int64_t interval_ns = 0;
  bool realtime = false;
  core::ClassifierChoice classifier = core::ClassifierChoice::kAuto;
  core::Profile profile;
  std::string profile_name;
  ResidencyBasisFound residency;
  std::vector<kvm::Pmu> core_pmus;
  std::string reader;         // "bpf" or "read"
  std::string no_bpf_reason;  // why it is read(2), where that was not asked for
};

v1::Session MakeSession(const kvm::HostFacts& host, const SessionFacts& facts);

v1::VmInstance MakeVmInstance(const kvm::Vm& vm);

// The set of one epoch as it was opened.
v1::VcpuSet MakeVcpuSet(uint32_t vm_number, uint32_t epoch, int64_t mono_ns, const kvm::Vm& vm,
                        const kvm::OpenedGroups& opened);

}  // namespace vcpulse::recorder

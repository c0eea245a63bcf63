#pragma once

// Where the code of a guest is, sampled from the host. One thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/counters/perf_events.h"
#include "kvm/hotspots/address_counts.h"
#include "kvm/hotspots/stack_look.h"
#include "kvm/tracing/sample_records.h"
#include "kvm/vm.h"

namespace vcpulse::kvm {

// In the order in which they are tried.
enum class AddressSource : uint8_t {
  // Overflows of a counter of guest cycles on the thread: needs a PMU, takes one of its counters.
  kCycles,
  // Exits by an interrupt of the host (kvm:kvm_exit): needs tracefs, and so root. About as many as
  // the host has timer ticks; each exit of the guest costs some hundred ns more.
  kKvmExit,
  // QMP: `info registers`, four times a second. It stops the vCPUs for a moment each time.
  kQmp,
};

std::string_view ToString(AddressSource source);  // "cycles", "kvm-exit", "qmp"
std::optional<AddressSource> FindAddressSource(std::string_view name);

struct AddressSamplerOptions {
  std::string root = "/";               // as in Discovery; of tracefs too
  std::optional<AddressSource> source;  // this one alone
  bool qmp_too = true;                  // else only where `source` says so: it stops the vCPUs
  uint64_t frequency_hz = 499;          // of kCycles
  bool force_mediated_vpmu = false;     // as in OpenOptions
  bool stacks = false;                  // of kQmp: the stack, too, in kernel mode
};

// Some vCPUs of one VM.
class AddressSampler {
 public:
  // Opens the first source that all of these vCPUs have. Errors: why each was refused, in one line.
  static absl::StatusOr<std::unique_ptr<AddressSampler>> Open(PerfEvents& perf, const Vm& vm,
                                                              const AddressSamplerOptions& options);
  virtual ~AddressSampler() = default;

  virtual AddressSource source() const = 0;
  // Begins and ends; samples outside are none. Errors: of the system calls.
  virtual absl::Status Start() = 0;
  virtual absl::Status Stop() = 0;
  // Takes in what was sampled so far; called ten times a second. Errors: kQmp's answer.
  virtual absl::Status Collect() = 0;

  // In the order of the VM's vCPUs.
  const std::vector<AddressCounts>& counts() const { return counts_; }

  // Likewise; of those whose stack could be read, and stood at the same place before and after.
  const std::vector<std::vector<StackLook>>& looks() const { return looks_; }

  // Why the sources before this one were refused, in one line; empty where none was.
  const std::string& refused() const { return refused_; }

 protected:
  explicit AddressSampler(size_t vcpus) : counts_(vcpus), looks_(vcpus) {}

  std::vector<AddressCounts> counts_;
  std::vector<std::vector<StackLook>> looks_;

 private:
  std::string refused_;
};

}  // namespace vcpulse::kvm

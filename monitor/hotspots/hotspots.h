#pragma once

// monitor/hotspots: which code of a guest was hot, named and laid out. Pure: samples in, text out.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "boost/json/fwd.hpp"
#include "kvm/hotspots/address_sampler.h"
#include "monitor/hotspots/symbols.h"

namespace vcpulse::hotspots {

// One function, or one address that no symbol is known for.
struct Spot {
  std::string name;  // "native_queued_spin_lock_slowpath" or "0x7f00a010"
  kvm::GuestMode mode = kvm::GuestMode::kUnknown;
  bool named = false;
  uint64_t samples = 0;
  uint64_t address = 0;  // of the function, or the one that has no name

  bool operator==(const Spot&) const = default;
};

// Samples with the functions that called, as far as they are known.
struct Stack {
  struct Frame {
    std::string name;  // as Spot's
    bool named = false;
    uint64_t address = 0;

    auto operator<=>(const Frame&) const = default;
  };
  std::vector<Frame> frames;  // innermost first: that of the Spot
  kvm::GuestMode mode = kvm::GuestMode::kUnknown;
  uint64_t samples = 0;

  bool operator==(const Stack&) const = default;
};

// What one vCPU was sampled in.
struct VcpuHotspots {
  std::string vm;
  int64_t pid = 0;
  int vcpu = 0;
  kvm::AddressSource source = kvm::AddressSource::kCycles;
  double seconds = 0;
  uint64_t samples = 0;  // of the spots, and of a recording those at addresses that it left out
  uint64_t lost = 0;
  uint64_t halted = 0;      // looks that found it halted, no samples
  std::vector<Spot> spots;  // most samples first
  // Windows of a recording, by what began them; none where it was sampled by hand.
  uint64_t after_spinning = 0;
  uint64_t after_starved = 0;
  std::string refused;  // of a recording: why earlier sources were not taken, or what failed
  // IdleShare of its samples; of a recording, of those after spinning.
  std::optional<double> idle_share;
  // WaitTally's, likewise.
  std::optional<double> wait_share;
  std::string code_refused;  // why no code was read although it was asked for
  // Of samples whose caller is known, most first; nothing where it was not asked for.
  std::optional<std::vector<Stack>> stacks;

  uint64_t Windows() const { return after_spinning + after_starved; }
};

std::string_view NameOf(kvm::GuestMode mode);  // "kernel", "user", "?"

// Samples of no spot, and what they are called.
uint64_t LeftOut(const VcpuHotspots& vcpu);
inline constexpr std::string_view kLeftOut = "places that were left out";

// Whether a kernel's function of this name is its idle loop, or what that waits in.
bool IsIdleLoop(std::string_view function);

// Of `all` samples, those of these spots that are in the guest's idle loop; nothing where no symbol
// named any.
std::optional<double> IdleShare(const std::vector<Spot>& spots, uint64_t all);

// Samples by what their code says.
class WaitTally {
 public:
  // Samples at one address: whether the code there waits in place, where it is known.
  void Add(uint64_t samples, std::optional<bool> waits);
  // Of `all` samples, those at code that waits; nothing where the code of none is known. What is
  // not known, or left out, counts as not waiting: as many at least.
  std::optional<double> ShareOf(uint64_t all) const;

 private:
  uint64_t waiting_ = 0;
  bool any_known_ = false;
};
// Whether a vmlinux's code at a sampled address waits in place; user mode is none of its.
std::optional<bool> WaitsByKernel(const GuestKernel& kernel, kvm::GuestAddress at);

// From this share on an idle loop or a wait in place explains what began a window.
inline constexpr double kMostly = 0.5;
// "idle polling: 93.1 % after spinning in the guest's idle loop", or "waits in place: at least 88.0
// % after spinning in a loop with PAUSE, WFE or YIELD"; empty where neither is mostly so.
std::string WhyItSpins(const VcpuHotspots& vcpu);

// Whether it ran code of the kernel, and no symbol named any: symbols that were given are another
// kernel's or another boot's (KASLR), or the guest is still in its firmware.
bool NoSymbolFits(const VcpuHotspots& vcpu);

// What names an address of the kernel.
using FindSymbol = absl::FunctionRef<std::optional<Symbol>(uint64_t address)>;
// The samples by function. A user-mode address has no name: it is some process's.
std::vector<Spot> SpotsOf(const kvm::AddressCounts& counts, FindSymbol find);
std::vector<Spot> SpotsOf(const kvm::AddressCounts& counts, const Symbols& symbols);

// The stacks of what was looked at, callers of kMostCallers frames at most.
std::vector<Stack> StacksOf(const std::vector<kvm::StackLook>& looks, const GuestKernel& kernel);
// All samples as stacks: of one frame each, where no caller is known.
std::vector<Stack> AllStacks(const VcpuHotspots& vcpu);

// "92.1 % native_queued_spin_lock_slowpath, 6.0 % rcu_all_qs": at most `most` of the spots.
std::string SharesOf(const VcpuHotspots& vcpu, size_t most);
// " in 2 windows after spinning": empty where it was sampled by hand.
std::string WindowsText(const VcpuHotspots& vcpu);

// At most `most` spots of each vCPU; the rest is one line.
std::string TextOf(const std::vector<VcpuHotspots>& vcpus, size_t most);
// One vCPU with at most `most` of its spots, without the names of its VM.
boost::json::object ObjectOf(const VcpuHotspots& vcpu, size_t most);
// One object: "vcpus", each with its VM and all of its spots.
std::string JsonOf(const std::vector<VcpuHotspots>& vcpus);
// Brendan Gregg's folded stacks: "VM;vCPU 0;kernel;CALLER;name SAMPLES", callers where they are
// known.
std::string FoldedOf(const std::vector<VcpuHotspots>& vcpus);

}  // namespace vcpulse::hotspots

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kvm/hotspots/address_sampler.h"
#include "kvm/vm.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::recorder {

// What begins a window of hot addresses.
struct HotspotsTriggers {
  bool spinning = false;
  bool starved = false;

  bool Any() const { return spinning || starved; }
};

// Samples where the code of a vCPU is, in short windows: one begins where the vCPU was SPINNING or
// starved for 200 ms, ends after a second or with its epoch, and the vCPU gets no other for ten
// seconds. Four are open at most, of all VMs together; of QMP, which stops the vCPUs and keeps the
// caller waiting, one. Control thread.
class HotspotsWatch {
 public:
  // VM number and epoch.
  using Epoch = std::pair<uint32_t, uint32_t>;
  // Opens a sampler of the VM's vCPUs. Errors: why none can be.
  using Open =
      std::function<absl::StatusOr<std::unique_ptr<kvm::AddressSampler>>(const kvm::Vm& vm)>;

  HotspotsWatch(HotspotsTriggers triggers, Open open, int64_t (*now_ns)());

  // A tick's sample and its verdicts, in the order of the epoch's vCPUs, which are those of `vm`.
  // Ticks that come late begin no window, and what held before a tick that is missing does not
  // count. Where no source can be opened for a vCPU while none was for others of its epoch, the
  // epoch is not tried again.
  void Observe(Epoch epoch, const kvm::Vm& vm, const core::Sample& sample,
               std::span<const core::Verdict> verdicts);
  // Takes in what was sampled, and closes the windows whose time has come, or whose sampler fails.
  // Called ten times a second.
  void Collect();
  // Closes the windows of an epoch that ends, and forgets it.
  void End(Epoch epoch);

  // What was found since the last call.
  std::vector<v1::HotAddresses> Take() { return std::exchange(found_, {}); }
  // The vCPUs of this epoch, by their place, from whose groups a window may take a counter of the
  // PMU.
  std::vector<size_t> SharingTheirPmu(Epoch epoch) const;

 private:
  struct Watched {
    std::optional<int64_t> spinning_since_ns;
    std::optional<int64_t> starved_since_ns;
  };
  struct WatchedEpoch {
    std::vector<Watched> vcpus;
    std::optional<uint64_t> last_tick;
    bool any_opened = false;
    bool is_refused = false;
  };
  struct Window {
    Epoch epoch;
    size_t vcpu = 0;  // its place in the epoch
    v1::HotAddresses record;
    std::unique_ptr<kvm::AddressSampler> sampler;
  };

  std::optional<v1::HotAddresses::Trigger> TriggerOf(Watched& watched, int64_t mono_ns,
                                                     const core::Verdict& verdict) const;
  bool MayBegin(Epoch epoch, const kvm::Vcpu& vcpu, int64_t mono_ns) const;
  // Whether it could be opened.
  bool Begin(Epoch epoch, const kvm::Vm& vm, size_t vcpu, v1::HotAddresses::Trigger trigger);
  void Close(Window& window);
  void CloseWhere(absl::FunctionRef<bool(Window&)> ends);

  const HotspotsTriggers triggers_;
  const Open open_;
  int64_t (*const now_ns_)();
  std::map<Epoch, WatchedEpoch> watched_;
  // By VM number and index of the vCPU, whatever the epoch: when its next window may begin.
  std::map<std::pair<uint32_t, int>, int64_t> not_before_ns_;
  std::vector<Window> windows_;
  std::vector<v1::HotAddresses> found_;
};

}  // namespace vcpulse::recorder

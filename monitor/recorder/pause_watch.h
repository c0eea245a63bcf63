#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kvm/discovery/pause.h"
#include "monitor/core/sample.h"

namespace vcpulse::recorder {

// What holds a VM.
enum class PauseCause {
  kNone,     // it goes on; halted vCPUs do
  kSigstop,  // every vCPU thread is stopped (T)
  kHeld,     // every vCPU thread waits outside KVM_RUN, as after a QMP stop
};

// Tells a paused VM from a halted one, sample by sample of one epoch. Once all vCPUs are quiet
// (blocked, nothing enabled since the previous sample) their threads are looked at, up to the first
// that waits in KVM, and an answer holds while its thread stays quiet: whoever pauses a VM kicks
// its threads out of KVM_RUN, so the tick of the pause is not quiet. While the VM is paused, a
// thread that ran a little and blocked again (a monitor command runs on it) is looked at once more.
// One thread.
class PauseWatch {
 public:
  // Where a vCPU's thread waits now, by its position in the sample.
  using Look = std::function<kvm::WaitPlace(size_t vcpu)>;

  PauseWatch(size_t vcpus, Look look);

  // What holds the VM as of this sample, the next one of the epoch; where it is kHeld, the state of
  // every vCPU in `sample` becomes kPaused. Nothing for the first sample: its states are not known.
  // The look is taken when the sample is handed over, so a change within that time (50 ms) may show
  // one sample early.
  std::optional<PauseCause> Observe(core::Sample& sample);

 private:
  // A VM is held only after it was quiet for so long: at ticks of 1 ms each lock of the VMM that
  // its vCPUs wait for would look like a pause.
  static constexpr int64_t kShortestPause_ns = 50'000'000;

  struct VcpuMemory {
    uint64_t enabled_ns = 0;  // of the sample before
    std::optional<kvm::WaitPlace> place;
  };

  // Whether this vCPU is quiet; remembers the sample.
  bool MayBeHeld(size_t vcpu, const core::VcpuSample& sample);
  bool AllWaitInUserspace();

  Look look_;
  std::vector<VcpuMemory> vcpus_;
  // The last sample in which not all vCPUs could be held, or the first one.
  std::optional<int64_t> last_active_ns_;
  bool paused_ = false;
};

}  // namespace vcpulse::recorder

#include "monitor/recorder/pause_watch.h"

#include <algorithm>
#include <utility>

namespace vcpulse::recorder {

PauseWatch::PauseWatch(size_t vcpus, Look look) : look_(std::move(look)), vcpus_(vcpus) {}

bool PauseWatch::IsHeld(size_t vcpu, const core::VcpuSample& sample) {
  VcpuMemory& memory = vcpus_[vcpu];
  const bool ran =
      std::exchange(memory.enabled_ns, sample.time_enabled_ns) != sample.time_enabled_ns;
  if (ran || sample.state != core::ThreadState::kBlocked) memory.place.reset();
  if (sample.state != core::ThreadState::kBlocked || (ran && !paused_)) return false;
  if (!memory.place) memory.place = look_(vcpu);
  return memory.place == kvm::WaitPlace::kUserspace;
}

std::optional<PauseCause> PauseWatch::Observe(core::Sample& sample) {
  bool held = true;  // every thread is asked, so that each remembers this sample
  for (size_t i = 0; i < vcpus_.size(); ++i) held = IsHeld(i, sample.vcpus[i]) && held;
  if (std::exchange(first_, false)) return std::nullopt;
  const bool stopped = std::ranges::all_of(sample.vcpus, [](const core::VcpuSample& vcpu) {
    return vcpu.state == core::ThreadState::kStopped;
  });
  paused_ = held || stopped;
  if (stopped) return PauseCause::kSigstop;
  if (!held) return PauseCause::kNone;
  for (core::VcpuSample& vcpu : sample.vcpus) vcpu.state = core::ThreadState::kPaused;
  return PauseCause::kHeld;
}

}  // namespace vcpulse::recorder

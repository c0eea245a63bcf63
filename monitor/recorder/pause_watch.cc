#include "monitor/recorder/pause_watch.h"

#include <algorithm>
#include <utility>

namespace vcpulse::recorder {

PauseWatch::PauseWatch(size_t vcpus, Look look) : look_(std::move(look)), vcpus_(vcpus) {}

bool PauseWatch::MayBeHeld(size_t vcpu, const core::VcpuSample& sample) {
  VcpuMemory& memory = vcpus_[vcpu];
  const bool ran =
      std::exchange(memory.enabled_ns, sample.time_enabled_ns) != sample.time_enabled_ns;
  const bool blocked = sample.state == core::ThreadState::kBlocked;
  if (ran || !blocked) memory.place.reset();
  return blocked && (!ran || paused_);
}

bool PauseWatch::AllWaitInUserspace() {
  for (size_t i = 0; i < vcpus_.size(); ++i) {
    VcpuMemory& memory = vcpus_[i];
    if (!memory.place) memory.place = look_(i);
    if (memory.place != kvm::WaitPlace::kUserspace) return false;
  }
  return true;
}

std::optional<PauseCause> PauseWatch::Observe(core::Sample& sample) {
  bool may_be_held = true;  // every vCPU is asked, so that each remembers this sample
  for (size_t i = 0; i < vcpus_.size(); ++i) {
    may_be_held = MayBeHeld(i, sample.vcpus[i]) && may_be_held;
  }
  const bool is_first = !last_active_ns_;
  if (is_first || !may_be_held) last_active_ns_ = sample.wake_ns;
  if (is_first) return std::nullopt;
  const bool stopped = std::ranges::all_of(sample.vcpus, [](const core::VcpuSample& vcpu) {
    return vcpu.state == core::ThreadState::kStopped;
  });
  const bool long_enough = paused_ || sample.wake_ns - *last_active_ns_ >= kShortestPause_ns;
  const bool held = may_be_held && long_enough && AllWaitInUserspace();
  paused_ = held || stopped;
  if (stopped) return PauseCause::kSigstop;
  if (!held) return PauseCause::kNone;
  for (core::VcpuSample& vcpu : sample.vcpus) vcpu.state = core::ThreadState::kPaused;
  return PauseCause::kHeld;
}

}  // namespace vcpulse::recorder

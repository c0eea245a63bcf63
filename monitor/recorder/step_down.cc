#include "monitor/recorder/step_down.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace vcpulse::recorder {
namespace {

// A group that was enabled for this long and never ran will not run.
constexpr uint64_t kNeverRan_ns = 20'000'000;
// One that ran before, or waits for its first turn, may have to wait for so long.
constexpr uint64_t kNoTurn_ns = 1'000'000'000;
constexpr int kStarvingSamples = 3;

// The events of a rung that are not absent.
std::vector<std::string> NamesLeft(const kvm::Rung& rung,
                                   const std::vector<kvm::AbsentEvent>& absent) {
  std::vector<std::string> names;
  for (const kvm::Event& event : kvm::EventsOf(rung)) {
    if (std::ranges::find(absent, event.name, &kvm::AbsentEvent::name) == absent.end()) {
      names.push_back(event.name);
    }
  }
  return names;
}

}  // namespace

RunWatch::RunWatch(size_t vcpus, size_t groups, size_t core_pmus, bool multiplexed)
    : groups_(groups),
      core_pmus_(std::clamp<size_t>(core_pmus, 1, groups)),
      per_vcpu_((groups_ + core_pmus_ - 1) / core_pmus_) {
  const bool take_turns = multiplexed && groups_ > core_pmus_;
  first_patience_ns_ = take_turns ? kNoTurn_ns : kNeverRan_ns;
  last_.resize(vcpus * per_vcpu_);
}

RunWatch::Finding RunWatch::Observe(const core::Sample& sample) {
  bool starves = false;
  bool all_ran = true;  // of those that starve
  Last* last = last_.data();
  for (size_t v = 0; v < sample.vcpus.size(); ++v) {
    const uint64_t enabled_ns = sample.vcpus[v].time_enabled_ns;
    for (size_t first = 0; first < groups_; first += core_pmus_, ++last) {
      uint64_t running_ns = first == 0 ? sample.vcpus[v].time_running_ns : 0;
      for (size_t g = std::max<size_t>(first, 1); g < std::min(first + core_pmus_, groups_); ++g) {
        running_ns += sample.further[v * (groups_ - 1) + g - 1].time_running_ns;
      }
      if (running_ns > last->running_ns) {
        *last = {.enabled_ns = enabled_ns, .running_ns = running_ns};
        any_ran_ = true;
        continue;
      }
      const bool ran = last->running_ns > 0;
      if (enabled_ns - last->enabled_ns < (ran ? kNoTurn_ns : first_patience_ns_)) continue;
      starves = true;
      all_ran = all_ran && ran;
    }
  }
  starving_samples_ = starves ? starving_samples_ + 1 : 0;
  if (starving_samples_ >= kStarvingSamples) {
    ran_before_ = all_ran;
    return Finding::kStarves;
  }
  return any_ran_ && !starves ? Finding::kRuns : Finding::kUnjudged;
}

void RunWatch::PassOver(size_t vcpu, uint64_t time_enabled_ns) {
  for (size_t i = vcpu * per_vcpu_; i < (vcpu + 1) * per_vcpu_; ++i) {
    last_[i].enabled_ns = time_enabled_ns;
  }
}

void ClimbPause::SteppedDown(int64_t now_ns) {
  const bool failed = climbed_ns_ && now_ns - *climbed_ns_ < pause_ns_;
  if (climbed_ns_) pause_ns_ = failed ? std::min(2 * pause_ns_, kLongest_ns) : kFirst_ns;
  climbed_ns_.reset();
  due_ns_ = now_ns + pause_ns_;
}

void ClimbPause::Climbed(int64_t now_ns) {
  climbed_ns_ = now_ns;
  due_ns_ = now_ns + kFirst_ns;
}

size_t LargestGroup(const std::vector<kvm::GroupLayout>& layout) {
  size_t largest = 0;
  for (const kvm::GroupLayout& group : layout) largest = std::max(largest, group.events.size());
  return largest;
}

size_t NextDifferentRung(const std::vector<kvm::Rung>& ladder, size_t from, size_t largest_group,
                         const std::vector<kvm::AbsentEvent>& absent) {
  const std::vector<std::string> names = NamesLeft(ladder[from], absent);
  size_t next = from + 1;
  while (next < ladder.size() &&
         (ladder[next].multiplexed ? ladder[next].largest_group >= largest_group
                                   : NamesLeft(ladder[next], absent) == names)) {
    ++next;
  }
  return next;
}

}  // namespace vcpulse::recorder

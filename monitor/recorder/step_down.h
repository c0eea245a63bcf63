#pragma once

// When a VM's events step down the ladder and up again, and to which rung. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kvm/counters/group_layout.h"
#include "kvm/events/event.h"
#include "kvm/events/event_ladder.h"
#include "monitor/core/sample.h"

namespace vcpulse::recorder {

// Whether the groups of an epoch get time on the PMU. It judges by time enabled, so a vCPU that
// sleeps is not judged. Takes memory in its constructor alone.
class RunWatch {
 public:
  enum class Finding {
    kUnjudged,  // no group was enabled for long enough
    kRuns,      // each that was enabled for long enough ran
    kStarves,   // a group of some vCPU gets no time
  };

  // `groups` of each vCPU; each `core_pmus` in a row count as one, each running on its own cores
  // only. With `multiplexed` they may take turns.
  RunWatch(size_t vcpus, size_t groups, size_t core_pmus, bool multiplexed);

  // The samples of the epoch in order. A group starves where it was enabled for a second since it
  // last ran; one that never ran and takes no turns, where that is 20 ms; three samples in a row.
  Finding Observe(const core::Sample& sample);

  // The groups of this vCPU, enabled for so long, may have waited for an event of ours until now:
  // none starves by that.
  void PassOver(size_t vcpu, uint64_t time_enabled_ns);

  // Of a kStarves: whether all groups had run before.
  bool ran_before() const { return ran_before_; }

 private:
  struct Last {
    uint64_t enabled_ns = 0;  // when it was last seen to have run
    uint64_t running_ns = 0;
  };

  size_t groups_;
  size_t core_pmus_;
  size_t per_vcpu_;  // of last_: one for `core_pmus_` groups
  uint64_t first_patience_ns_;
  std::vector<Last> last_;  // by vCPU
  int starving_samples_ = 0;
  bool any_ran_ = false;
  bool ran_before_ = false;
};

// When a set that was stepped down is tried again: 10 s after the last change, and after each try
// that failed twice as long, up to 10 min. A try failed where the set is stepped down again before
// the pause before it has passed once more.
class ClimbPause {
 public:
  void SteppedDown(int64_t now_ns);
  void Climbed(int64_t now_ns);
  bool IsDue(int64_t now_ns) const { return now_ns >= due_ns_; }

 private:
  static constexpr int64_t kFirst_ns = 10'000'000'000;
  static constexpr int64_t kLongest_ns = 600'000'000'000;

  int64_t pause_ns_ = kFirst_ns;
  int64_t due_ns_ = 0;
  std::optional<int64_t> climbed_ns_;  // since the last step down
};

// Events of the largest group.
size_t LargestGroup(const std::vector<kvm::GroupLayout>& layout);

// The next rung below `from` that would open something else than was opened: fewer events, or
// groups smaller than `largest_group`. ladder.size() where there is none.
size_t NextDifferentRung(const std::vector<kvm::Rung>& ladder, size_t from, size_t largest_group,
                         const std::vector<kvm::AbsentEvent>& absent);

}  // namespace vcpulse::recorder

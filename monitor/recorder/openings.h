#pragma once

// The counters of one VM, opened epoch after epoch: of as many vCPUs as descriptors suffice for,
// of as many events as run. It says what to open next and remembers what is open; epochs, records
// and the sampler are Recording's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kvm/counters/group_opener.h"
#include "kvm/counters/perf_events.h"
#include "kvm/vm.h"
#include "monitor/recorder/step_down.h"

namespace vcpulse::recorder {

// What is counted, for people: "event set core".
std::string NameOf(const kvm::OpenedGroups& opened);

// One thread: the control thread.
class Openings {
 public:
  // The epoch that runs until the next one begins.
  enum class Before {
    kNewVm,      // none: a VM that cannot be opened whole is not recorded
    kNone,       // none, or one without vCPUs of other threads
    kUncovered,  // one of the same threads, none of which could be opened
    kCounting,   // one that holds descriptors
  };

  struct Next {
    std::optional<kvm::OpenedGroups> groups;  // none: the epoch before goes on
    // Nothing is open, as the epoch before holds the descriptors: Open again when it is closed.
    bool awaits_descriptors = false;
    std::string notice;  // for people, about this VM; or empty
  };

  // Where OpenGroups begins.
  struct FirstRung {
    size_t rung = 0;                         // of the ladder: the largest still to be tried
    std::vector<kvm::AbsentEvent> given_up;  // by steps down
  };

  struct Step {
    std::optional<FirstRung> to;  // none: there is no smaller set
    std::string detail;           // for people
  };

  // All must outlive it.
  Openings(kvm::PerfEvents& perf, const std::string& root, const kvm::OpenOptions& options)
      : perf_(perf), root_(root), options_(options) {}

  // Opens `vm` while the epoch before still ticks. Where descriptors are short that one is to be
  // closed first; what cannot be opened even then is listed as unopened, and of a new VM an error.
  // Errors: those of kvm::OpenGroups for a new VM, else NotFound.
  absl::StatusOr<Next> Open(const kvm::Vm& vm, Before before);
  // These have become the epoch that runs.
  void Began(kvm::OpenedGroups groups) { opened_ = std::move(groups); }
  // As it began; the groups themselves are the epoch's.
  const kvm::OpenedGroups& opened() const { return opened_; }
  // Whether one of the vCPUs that are lacking opens now: tried beside the running epoch, and
  // closed.
  bool MoreOpen(const kvm::Vm& vm) const;

  // The step down from what is open and gets no time on the PMU; to be taken by BeginAt and Open.
  Step StepBelow(bool ran_before) const;
  // The next Open begins there. Returns where the one before did.
  FirstRung BeginAt(FirstRung first) { return std::exchange(first_, std::move(first)); }
  // The step is taken, from there. Returns whether it only ends a try to climb.
  bool SteppedDown(const FirstRung& from, int64_t now_ns);
  // The larger set that was stepped down from, where it is due to be tried again and opens whole.
  std::optional<kvm::OpenedGroups> TryAbove(const kvm::Vm& vm, int64_t now_ns);
  // What TryAbove returned has become the epoch that runs, or could not. The notice, or "".
  std::string Climbed(const kvm::Vm& vm);
  void NotClimbed(int64_t now_ns) { climb_.SteppedDown(now_ns); }
  // Its groups run. Returns whether that was being tried since the latest climb.
  bool Runs() { return std::exchange(trying_, false); }

 private:
  kvm::OpenOptions OptionsFrom(const FirstRung& first) const;
  // What an epoch without any vCPU consists of.
  kvm::OpenedGroups NothingOpened(const kvm::Vm& vm, std::string_view why) const;
  // Remembers which vCPUs are not counted. The notice where that changed, else "".
  std::string NoteLacking(const kvm::Vm& vm, const std::vector<kvm::UnopenedVcpu>& unopened);

  kvm::PerfEvents& perf_;
  const std::string& root_;
  const kvm::OpenOptions& options_;
  kvm::OpenedGroups opened_;
  FirstRung first_;
  std::vector<FirstRung> steps_;  // down, to be climbed again: the latest last
  ClimbPause climb_;
  bool trying_ = false;  // since the latest climb nothing has run
  // vCPUs that are not opened although they live: tried again by each Track.
  std::vector<kvm::Vcpu> lacking_;
  std::string said_lacking_;
};

}  // namespace vcpulse::recorder

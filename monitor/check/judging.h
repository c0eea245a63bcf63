#pragma once

// The second reading of a timeline: each tick to the tallies of those it tells of.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/check/coverage.h"
#include "monitor/check/outcome.h"
#include "monitor/check/subjects.h"
#include "monitor/check/tally.h"
#include "monitor/check/timetable.h"
#include "monitor/metric/interval.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::check {

// What was found of one subject.
struct Watched {
  Tallied tallied;
  Support support;
};

// A vCPU that waited for a CPU.
struct Waited {
  uint32_t vm = 0;
  uint32_t vcpu = 0;
  double share = 0;  // of the judged time in which waiting was measured
};

// Takes the ticks of one stream in order. One thread.
class Judging {
 public:
  // `timetable` was made of the same stream and must outlive this. `ends_count`: where a VM ended
  // within a span, the rest of the span is judged too, and unknown.
  Judging(const Timetable& timetable, const std::vector<TimeRange>& spans, bool ends_count = false);

  // Asks for a quantity of a subject, before the first tick. Gives the place of its answer.
  size_t Watch(const Subject& subject, const Quantity& quantity, const std::optional<Limit>& limit);
  // The same by a tally of its own.
  size_t WatchBy(const Subject& subject, std::unique_ptr<Tally> tally);
  // Judged time in which at least one of `subjects` was there.
  int64_t TimeOfAny(const std::vector<Subject>& subjects) const;
  // The next entry of the stream; errors: those of metric::IntervalReader.
  absl::Status Add(const timeline::Entry& entry);
  // After the last tick, once: the answers, in the order in which they were asked for.
  std::vector<Watched> Finish();

  // The rest after Finish. `share` is not negative.
  std::vector<Waited> WaitedMoreThan(double share) const;
  // Samples that could not be used, as no vCPU set fits them.
  uint64_t unattributed_ticks() const { return unjudged_ticks_ + intervals_.unusable_ticks(); }

 private:
  struct Asked {
    size_t place = 0;
    std::unique_ptr<Tally> tally;
  };
  // One vCPU or, without an index, one VM.
  struct Tracked {
    Coverage coverage;
    Support support{};
    std::vector<Asked> asked{};
    double waited_ns = 0;
    double waiting_known_ns = 0;
  };
  // How far a VM's samples were followed.
  struct Followed {
    uint32_t epoch = 0;
    int64_t last_sample_ns = 0;
    bool has_sample = false;
  };
  using Key = std::pair<uint32_t, std::optional<uint32_t>>;

  void Begin(const Key& key, const std::vector<TimeRange>& spans, std::vector<TimeRange> windows);
  void TakeInterval(const metric::Interval& interval);
  // A window of hot addresses that lies wholly in judged time.
  void TakeWindow(const v1::HotAddresses& window);
  void FollowVm(const timeline::TickEntry& tick, const Epoch& epoch);
  void BeginEpoch(uint32_t vm, Tracked& tracked, uint32_t epoch);
  void EndEpoch(uint32_t vm, Tracked& tracked);
  void NoSampleDue(Tracked& tracked, const TimeRange& when);
  // What `sampled` (empty: no sample) gave.
  void Give(Tracked& tracked, std::span<const Part> parts, const TimeRange& sampled = {});

  const Timetable& timetable_;
  const int64_t interval_ns_;  // 0: not known
  metric::IntervalReader intervals_;
  std::map<Key, Tracked> tracked_;
  std::map<uint32_t, Followed> followed_;  // by VM
  std::map<uint32_t, TimeRange> gone_;     // by VM: judged though it had ended
  size_t watched_ = 0;
  uint64_t unjudged_ticks_ = 0;  // without a verdict for each vCPU
};

// What was found of one subject, in words.

// The finding for `subject`; `start_ns` is the recording's start, `degraded_reason` why no counter
// was read (may be empty).
Finding MakeFinding(const Question& question, const Subject& subject, const Watched& watched,
                    int64_t start_ns, const std::string& degraded_reason);

// Where nothing fits: INCONCLUSIVE.
Finding MissingSubject(const std::string& whom, const std::string& reason);

}  // namespace vcpulse::check

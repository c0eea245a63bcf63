#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/replay/recorded_settings.h"
#include "monitor/replay/rejudge.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::replay {

// Says what to judge a stream with, from its session and the profile it keeps (or null).
using Decide = std::function<absl::StatusOr<Settings>(const v1::Session&, const v1::Profile*)>;

// Takes the entries of one stream, in order, and writes them as another stream: every tick judged
// anew, everything else as it is. It holds one chunk in memory. Where the source lost ticks, a Gap
// record says so; the first sample after such a hole may bring the one before it along (the base of
// its chunk), which is then written too, without a verdict. One thread.
class Reclassify {
 public:
  // `source` is for error messages. `writer` is of the stream `id` and must outlive this.
  Reclassify(std::string source, timeline::StreamId id, Decide decide,
             timeline::RecordWriter& writer);

  // Errors: those of `decide` and of the writer; InvalidArgument where a second stream begins, or
  // the stream has no session.
  absl::Status Take(const timeline::Entry& entry);
  // After the last entry: writes what is left.
  absl::Status Finish();

  // Samples that were left out, as no vCPU set fits them.
  uint64_t unusable_ticks() const { return unusable_ticks_; }
  uint64_t ticks() const { return ticks_; }

 private:
  // A (vm, epoch) of which ticks may come.
  struct Epoch {
    size_t vcpus = 0;
    size_t further_groups = 0;
    bool ending = false;  // its VM has ended, or ticks of a later epoch have come
    bool quiet = false;   // no tick since the last flush
    std::optional<uint64_t> last_tick{};
  };
  using VmEpoch = std::pair<uint32_t, uint32_t>;

  absl::Status TakeSession(const v1::Session& session);
  absl::Status Start();
  absl::Status TakeClock(const v1::ClockSnapshot& clock);
  void FollowSequence(uint64_t sequence);
  void TakeSet(const timeline::Entry& entry);
  void TakeTick(const timeline::TickEntry& tick);
  void TakeOther(const timeline::Entry& entry);
  // Of the hole before this tick.
  void AddGap(const timeline::TickEntry& tick);
  void MarkEnding(uint32_t vm, uint32_t before_epoch);
  void EndQuietEpochs();
  void Add(v1::TimelineRecord record, std::optional<int64_t> mono_ns);
  void AddWaiting(int64_t mono_ns);

  std::string source_;
  timeline::StreamId id_;
  Decide decide_;
  timeline::RecordWriter& writer_;

  std::optional<v1::Session> session_;  // of the source
  std::optional<v1::Profile> kept_;
  std::optional<Rejudge> rejudge_;  // once it was decided with what
  std::map<VmEpoch, Epoch> epochs_;
  std::optional<v1::ClockSnapshot> clock_;   // of the chunk that is being filled
  std::vector<v1::TimelineRecord> waiting_;  // until an instant is known
  std::optional<int64_t> last_mono_ns_;
  uint64_t next_sequence_ = 1;
  bool hole_ = false;                  // records were lost since the last tick
  std::optional<uint64_t> last_tick_;  // accounted for, by a sample or a Gap record
  uint64_t gaps_added_ = 0;
  uint64_t ticks_ = 0;
  uint64_t unusable_ticks_ = 0;
};

}  // namespace vcpulse::replay

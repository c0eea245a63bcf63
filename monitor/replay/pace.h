#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "monitor/timeline/entry.h"

namespace vcpulse::replay {

// When the records of a stream are due, where they are played at their recorded pace. Pure: waiting
// is its caller's.
//
// The first record that is paced is due at once; each later one as long after it as it was
// recorded, divided by the speed. Deadlines are absolute, so a late one delays no other. Sessions,
// profiles, vCPU sets, summaries and the context of chunks are not paced: they are due with what
// came before. So is a record whose instant lies before that of an earlier one (the order of the
// stream is kept), and a marker before the first other record or stamped more than a second after
// what came so far: its stamp is that of a harness, which may be any.
// Pauses of the recording and gaps last as long as they did, unless `longest_pause_ns` is set.
class Pace {
 public:
  struct Options {
    double speed = 1;  // more than 0: how many times as fast
    // Recorded time between two records that is more than this is cut to it: between the spans of
    // a phase there is nothing to wait for.
    int64_t longest_pause_ns = std::numeric_limits<int64_t>::max();
  };

  explicit Pace(const Options& options) : options_(options) {}

  // When the record is due; nothing: at once. `now_ns` is of the clock that the result is of, and
  // only looked at for the first record that is paced.
  std::optional<int64_t> DueNs(const timeline::Entry& entry, int64_t now_ns);

 private:
  const Options options_;
  std::optional<int64_t> latest_ns_;  // recorded
  int64_t played_ns_ = 0;             // recorded time from the first to the latest, pauses cut
  int64_t begin_ns_ = 0;              // when the first was due
};

}  // namespace vcpulse::replay

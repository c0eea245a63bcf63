#pragma once

// Of the collector: what waits for the disk. Only .cc files of this module and tests include this.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace vcpulse::stream {

// Jobs of several owners, those of one in the order in which they were put. A round takes a bounded
// part of each owner's, so that nobody waits behind all that another has put; an owner that rests
// has no part. Instants are of any one clock. No thread of its own.
template <typename Job>
class FairQueue {
 public:
  // Whether the owner had none: else the next round is when it would have been.
  bool Put(const std::string& owner, Job job) {
    std::deque<Job>& waiting = jobs_[owner];
    waiting.push_back(std::move(job));
    return waiting.size() == 1;
  }

  // Of each owner the oldest jobs: one at least, and no more once they cost `budget`. Jobs that
  // cost so much alone come last. `cost` is given a job and the owner's job before it in this
  // round, or null.
  template <typename Cost>
  std::deque<Job> TakeRound(uint64_t budget, const Cost& cost, int64_t now_ns) {
    std::erase_if(rests_, [now_ns](const auto& rest) { return rest.second <= now_ns; });
    std::deque<Job> round;
    std::deque<Job> costly;
    for (auto owner = jobs_.begin(); owner != jobs_.end();) {
      if (rests_.contains(owner->first)) {
        ++owner;
        continue;
      }
      std::deque<Job>& waiting = owner->second;
      uint64_t spent = 0;
      for (const Job* before = nullptr; !waiting.empty() && spent < budget;) {
        const uint64_t next = cost(waiting.front(), before);
        if (next >= budget && before != nullptr) break;
        std::deque<Job>& to = next >= budget ? costly : round;
        to.push_back(std::move(waiting.front()));
        waiting.pop_front();
        spent += next;
        before = &to.back();
      }
      owner = waiting.empty() ? jobs_.erase(owner) : std::next(owner);
    }
    std::ranges::move(costly, std::back_inserter(round));
    return round;
  }

  // The owner has no part in rounds before `until_ns`.
  void Rest(const std::string& owner, int64_t until_ns) { rests_[owner] = until_ns; }

  // When a round has something to take, the past where it has now; nothing where no job waits.
  std::optional<int64_t> NextRound_ns() const {
    std::optional<int64_t> next_ns;
    for (const auto& [owner, waiting] : jobs_) {
      const auto rest = rests_.find(owner);
      const int64_t from_ns =
          rest == rests_.end() ? std::numeric_limits<int64_t>::min() : rest->second;
      next_ns = std::min(next_ns.value_or(from_ns), from_ns);
    }
    return next_ns;
  }

  bool empty() const { return jobs_.empty(); }
  void clear() { jobs_.clear(); }

  // Calls `see` with the oldest job of each owner.
  template <typename See>
  void ForEachOldest(const See& see) const {
    for (const auto& [owner, waiting] : jobs_) see(waiting.front());
  }

 private:
  std::map<std::string, std::deque<Job>> jobs_;  // none is empty
  std::map<std::string, int64_t> rests_;         // by owner, until when
};

}  // namespace vcpulse::stream

#pragma once

// Of the collector: what waits for the disk. Only .cc files of this module and tests include this.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vcpulse::stream {

// Jobs of several owners, those of one in the order in which they were put. A round takes a bounded
// part of each owner's, so that nobody waits behind all that another has put; an owner that rests
// has no part. Instants are of any one clock. No thread of its own.
template <typename Job>
class FairQueue {
 public:
  // What a round takes: about `all`, shared out among those who are active, but `least` of each.
  struct Budget {
    uint64_t all = 0;
    uint64_t least = 0;
  };
  // Who has put a job within that time is active.
  static constexpr int64_t kActive_ns = 2'000'000'000;

  // Whether the owner had none: else the next round is when it would have been.
  bool Put(const std::string& name, Job job, int64_t now_ns) {
    Owner& owner = owners_[name];
    owner.put_ns = now_ns;
    owner.jobs.push_back(std::move(job));
    if (owner.jobs.size() > 1) return false;
    waiting_.push_back(&owner);
    return true;
  }

  // Of each owner the oldest jobs: one at least, and no more once they cost its part of the budget.
  // Jobs that cost so much alone come last. `cost` is given a job and the owner's job before it in
  // this round, or null.
  template <typename Cost>
  std::list<Job> TakeRound(const Budget& budget, const Cost& cost, int64_t now_ns) {
    ForgetInactive(now_ns);
    const uint64_t part = std::max(budget.least, budget.all / std::max<size_t>(1, active()));
    std::list<Job> round;
    std::list<Job> costly;
    std::erase_if(waiting_, [&](Owner* owner) {
      if (owner->rests_until_ns > now_ns) return false;
      uint64_t spent = 0;
      for (const Job* before = nullptr; !owner->jobs.empty() && spent < part;) {
        const uint64_t next = cost(owner->jobs.front(), before);
        if (next >= part && before != nullptr) break;
        std::list<Job>& to = next >= part ? costly : round;
        to.splice(to.end(), owner->jobs, owner->jobs.begin());
        spent += next;
        before = &to.back();
      }
      return owner->jobs.empty();
    });
    round.splice(round.end(), costly);
    return round;
  }

  // The owner has no part in rounds before `until_ns`.
  void Rest(const std::string& name, int64_t until_ns) { owners_[name].rests_until_ns = until_ns; }

  void EndRests() {
    for (auto& [name, owner] : owners_) owner.rests_until_ns = kNoRest;
  }

  // When a round has something to take, the past where it has now; nothing where no job waits.
  std::optional<int64_t> NextRound_ns() const {
    std::optional<int64_t> next_ns;
    for (const Owner* owner : waiting_) {
      next_ns = std::min(next_ns.value_or(owner->rests_until_ns), owner->rests_until_ns);
    }
    return next_ns;
  }

  // Owners that are active, have a job or rest, as of a round at most kActive_ns / 20 ago.
  size_t active() const { return owners_.size(); }
  bool empty() const { return waiting_.empty(); }
  void clear() {
    waiting_.clear();
    owners_.clear();
  }

  // Calls `see` with the oldest job of each owner.
  template <typename See>
  void ForEachOldest(const See& see) const {
    for (const Owner* owner : waiting_) see(owner->jobs.front());
  }

 private:
  static constexpr int64_t kNoRest = std::numeric_limits<int64_t>::min();
  struct Owner {
    std::list<Job> jobs;
    int64_t put_ns = 0;
    int64_t rests_until_ns = kNoRest;
  };

  void ForgetInactive(int64_t now_ns) {
    if (now_ns - forgot_ns_ < kActive_ns / 20) return;
    forgot_ns_ = now_ns;
    std::erase_if(owners_, [now_ns](const auto& entry) {
      const Owner& owner = entry.second;
      return owner.jobs.empty() && owner.rests_until_ns <= now_ns &&
             now_ns - owner.put_ns > kActive_ns;
    });
  }

  std::map<std::string, Owner> owners_;
  std::vector<Owner*> waiting_;  // those with a job, who came first before others
  int64_t forgot_ns_ = 0;
};

}  // namespace vcpulse::stream

#pragma once

// Of the collector: whose work its network thread does. Only .cc files of this module and tests
// include this.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace vcpulse::stream {

// What each agent has taken of one thread's time. One that has had more than its share, an n-th
// where n agents are active, waits until it has not. Instants are of any one clock. No thread of
// its own.
class TimeShares {
 public:
  // Nobody's share is less than one of so many.
  static constexpr size_t kMostShares = 64;
  // An agent may be ahead of its share by that much. It is far more than a chunk takes: those who
  // send one now and then never wait.
  static constexpr int64_t kAhead_ns = 500'000;
  // Who has taken time within that time is active.
  static constexpr int64_t kActive_ns = 2'000'000'000;

  // The agent has taken so much, until now.
  void Take(const std::string& agent, int64_t time_ns, int64_t now_ns) {
    Account& account = accounts_.try_emplace(agent, Account{.at_ns = now_ns}).first->second;
    account.ahead_ns = Ahead_ns(account, now_ns) + time_ns;
    account.at_ns = now_ns;
  }

  // When the agent may take more: now or earlier where it may at once.
  int64_t Next_ns(const std::string& agent, int64_t now_ns) const {
    const auto found = accounts_.find(agent);
    if (found == accounts_.end()) return now_ns;
    return now_ns + (Ahead_ns(found->second, now_ns) - kAhead_ns) * shares();
  }

  // To be called every now and then.
  void ForgetInactive(int64_t now_ns) {
    std::erase_if(accounts_, [&](const auto& entry) {
      return now_ns - entry.second.at_ns > kActive_ns && Ahead_ns(entry.second, now_ns) == 0;
    });
  }

 private:
  struct Account {
    int64_t ahead_ns = 0;  // of its share, at at_ns
    int64_t at_ns = 0;
  };

  int64_t shares() const {
    return static_cast<int64_t>(std::clamp<size_t>(accounts_.size(), 1, kMostShares));
  }
  int64_t Ahead_ns(const Account& account, int64_t now_ns) const {
    return std::max<int64_t>(0, account.ahead_ns - (now_ns - account.at_ns) / shares());
  }

  std::map<std::string, Account> accounts_;
};

}  // namespace vcpulse::stream

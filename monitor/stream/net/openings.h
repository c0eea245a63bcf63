#pragma once

// Of the collector: how fast one agent may open streams. Only .cc files of this module and tests
// include this.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace vcpulse::stream {

// A stream's opening makes a folder and a file, and syncs them: the disk, which all agents share,
// takes that about as long as the chunks of many agents. An agent opens kAtOnce streams (one for
// each recording), then one each kPeriod_ns; connections beyond that wait in order and are not
// refused. Holds an entry for each agent that opened one lately, and a number for each connection
// that waits. No clock, no thread of its own.
class Openings {
 public:
  static constexpr int64_t kAtOnce = 20;
  // The 64 connections that an agent may have wait for less than an agent's patience, 25 s.
  static constexpr int64_t kPeriod_ns = 333'000'000;

  // Whether the agent may open a stream for the connection now; else Due gives it back.
  bool Ask(const std::string& agent, uint64_t connection, int64_t now_ns) {
    Agent& known = agents_.try_emplace(agent, Agent{.full_ns = now_ns}).first->second;
    if (!known.waiting.empty() || !Take(known, now_ns)) {
      known.waiting.push_back(connection);
      return false;
    }
    return true;
  }

  // Connections whose turn has come.
  std::vector<uint64_t> Due(int64_t now_ns) {
    std::vector<uint64_t> due;
    for (auto entry = agents_.begin(); entry != agents_.end();) {
      Agent& agent = entry->second;
      while (!agent.waiting.empty() && Take(agent, now_ns)) {
        due.push_back(agent.waiting.front());
        agent.waiting.pop_front();
      }
      const bool is_full = agent.waiting.empty() && agent.full_ns <= now_ns;
      entry = is_full ? agents_.erase(entry) : std::next(entry);
    }
    return due;
  }

  // The connection has gone.
  void Forget(const std::string& agent, uint64_t connection) {
    if (const auto found = agents_.find(agent); found != agents_.end()) {
      std::erase(found->second.waiting, connection);
    }
  }

  bool empty() const { return agents_.empty(); }

 private:
  struct Agent {
    int64_t full_ns = 0;  // when it may open kAtOnce again
    std::deque<uint64_t> waiting{};
  };

  static bool Take(Agent& agent, int64_t now_ns) {
    const int64_t full_ns = std::max(agent.full_ns, now_ns) + kPeriod_ns;
    if (full_ns - now_ns > kAtOnce * kPeriod_ns) return false;
    agent.full_ns = full_ns;
    return true;
  }

  std::map<std::string, Agent> agents_;
};

}  // namespace vcpulse::stream

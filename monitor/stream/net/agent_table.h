#pragma once

// Of the collector: what is known of each agent, for statistics and for the rule that an agent id
// belongs to one host at a time.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/committer.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// Written by the collector's network thread; Stats() by any.
class AgentTable {
 public:
  // An agent says hello. Where another host (boot) is connected under its id: that host's name, and
  // nothing is noted.
  std::optional<std::string> Arrived(const v1::Hello& hello);
  // A connection of the agent has ended.
  void Left(const std::string& agent_id, bool in_error);
  void Duplicates(const std::string& agent_id, uint64_t count);
  // Chunks, or what tells of lost records, became durable. `offset_ns`: the agent's CLOCK_MONOTONIC
  // minus ours.
  void Durable(const std::string& agent_id, const Committer::Progress& progress,
               std::optional<int64_t> offset_ns);

  std::vector<Collector::AgentStats> Stats() const;

 private:
  struct Agent {
    Collector::AgentStats stats;
    std::string boot_id;              // of those connected now
    std::deque<std::string> streams;  // the latest that were seen
  };

  mutable std::mutex mutex_;
  std::map<std::string, Agent> agents_;
};

}  // namespace vcpulse::stream

#pragma once

// Of the collector: what was received and is not on disk yet. Only .cc files of this module include
// this.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace vcpulse::stream {

// Bytes that wait for the disk, of each agent and of all. An agent may hold a quarter of what all
// may: one that sends faster than the disk takes it does not use up the others' room. One thread,
// but for total().
class Pending {
 public:
  explicit Pending(uint64_t most) : most_(most) {}

  void Add(const std::string& agent, uint64_t bytes) {
    total_ += bytes;
    of_agent_[agent] += bytes;
  }

  // What was added and is done, however it ended.
  void Settle(const std::string& agent, uint64_t bytes) {
    total_ -= bytes;
    const auto found = of_agent_.find(agent);
    if (found != of_agent_.end() && (found->second -= bytes) == 0) of_agent_.erase(found);
  }

  // Whether more may be received from it.
  bool HasRoomFor(const std::string& agent) const {
    if (!HasRoom()) return false;
    const auto found = of_agent_.find(agent);
    return found == of_agent_.end() || found->second <= most_ / 4;
  }
  bool HasRoom() const { return total_ <= most_; }

  uint64_t total() const { return total_; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> total_ = 0;
  std::map<std::string, uint64_t> of_agent_;  // none is 0
};

}  // namespace vcpulse::stream

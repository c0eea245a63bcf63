#include "monitor/stream/net/agent_table.h"

#include <algorithm>

#include "kvm/base/clock.h"

namespace vcpulse::stream {
namespace {

// Those who are not connected are forgotten beyond it: anybody may take any name on a plain
// address.
constexpr size_t kMostAgents = 20'000;
// That are known of an agent, to count each once.
constexpr size_t kMostStreams = 64;

}  // namespace

std::optional<std::string> AgentTable::Arrived(const v1::Hello& hello) {
  const std::lock_guard lock(mutex_);
  if (agents_.size() >= kMostAgents && !agents_.contains(hello.agent_id())) {
    std::erase_if(agents_, [](const auto& entry) { return entry.second.stats.connections == 0; });
  }
  Agent& agent = agents_[hello.agent_id()];
  if (agent.stats.connections > 0 && agent.boot_id != hello.boot_id()) return agent.stats.host_name;
  agent.boot_id = hello.boot_id();
  agent.stats.agent_id = hello.agent_id();
  agent.stats.host_name = hello.host_name();
  ++agent.stats.connections;
  // A connection that only shows whether one can be had brings no stream.
  if (hello.next_sequence() > hello.first_sequence() &&
      std::ranges::find(agent.streams, hello.stream_id()) == agent.streams.end()) {
    ++agent.stats.streams;
    agent.streams.push_back(hello.stream_id());
    if (agent.streams.size() > kMostStreams) agent.streams.pop_front();
  }
  return std::nullopt;
}

void AgentTable::Left(const std::string& agent_id, bool in_error) {
  const std::lock_guard lock(mutex_);
  Collector::AgentStats& stats = agents_[agent_id].stats;
  --stats.connections;
  if (in_error) ++stats.errors;
}

void AgentTable::Duplicates(const std::string& agent_id, uint64_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  agents_[agent_id].stats.duplicates += count;
}

void AgentTable::Durable(const std::string& agent_id, const Committer::Progress& progress,
                         std::optional<int64_t> offset_ns) {
  if (progress.chunks.empty()) return;
  const std::lock_guard lock(mutex_);
  Collector::AgentStats& stats = agents_[agent_id].stats;
  std::optional<int64_t> last_mono_ns;
  for (const auto& chunk : progress.chunks) {
    if (chunk.lost_records > 0) {
      ++stats.gaps;
      stats.lost_records += chunk.lost_records;
      continue;
    }
    ++stats.chunks;
    stats.bytes += chunk.bytes->size();
    last_mono_ns = chunk.last_mono_ns;
  }
  stats.last_chunk_realtime_ns = RealtimeNow_ns();
  // An old timeline that is played has another clock.
  if (!last_mono_ns || !offset_ns) return;
  int64_t agents_now_ns = 0;
  int64_t lag_ns = 0;
  if (!__builtin_add_overflow(MonotonicNow_ns(), *offset_ns, &agents_now_ns) &&
      !__builtin_sub_overflow(agents_now_ns, *last_mono_ns, &lag_ns) && lag_ns >= 0) {
    stats.lag_ns = lag_ns;
  }
}

std::vector<Collector::AgentStats> AgentTable::Stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<Collector::AgentStats> stats;
  stats.reserve(agents_.size());
  for (const auto& [id, agent] : agents_) stats.push_back(agent.stats);
  return stats;
}

}  // namespace vcpulse::stream

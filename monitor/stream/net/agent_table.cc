#include "monitor/stream/net/agent_table.h"

#include "monitor/stream/net/clocks.h"

namespace vcpulse::stream {

std::optional<std::string> AgentTable::Arrived(const v1::Hello& hello) {
  const std::lock_guard lock(mutex_);
  Agent& agent = agents_[hello.agent_id()];
  if (agent.stats.connections > 0 && agent.boot_id != hello.boot_id()) return agent.stats.host_name;
  agent.boot_id = hello.boot_id();
  agent.stats.agent_id = hello.agent_id();
  agent.stats.host_name = hello.host_name();
  ++agent.stats.connections;
  if (agent.latest_stream != hello.stream_id()) ++agent.stats.streams;
  agent.latest_stream = hello.stream_id();
  return std::nullopt;
}

void AgentTable::Left(const std::string& agent_id, bool in_error) {
  const std::lock_guard lock(mutex_);
  Collector::AgentStats& stats = agents_[agent_id].stats;
  --stats.connections;
  if (in_error) ++stats.errors;
}

void AgentTable::Lost(const std::string& agent_id, const v1::LostRecords& lost) {
  const std::lock_guard lock(mutex_);
  Collector::AgentStats& stats = agents_[agent_id].stats;
  ++stats.gaps;
  stats.lost_records += lost.last_sequence() - lost.first_sequence() + 1;
}

void AgentTable::Duplicates(const std::string& agent_id, uint64_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  agents_[agent_id].stats.duplicates += count;
}

void AgentTable::Durable(const std::string& agent_id, const Committer::Progress& progress,
                         int64_t offset_ns) {
  if (progress.chunks.empty()) return;
  const std::lock_guard lock(mutex_);
  Collector::AgentStats& stats = agents_[agent_id].stats;
  stats.chunks += progress.chunks.size();
  for (const auto& chunk : progress.chunks) stats.bytes += chunk.bytes->size();
  stats.last_chunk_realtime_ns = RealtimeNow_ns();
  // An old timeline that is played has another clock: then this says nothing.
  const int64_t lag_ns = MonotonicNow_ns() + offset_ns - progress.chunks.back().last_mono_ns;
  if (lag_ns >= 0) stats.lag_ns = lag_ns;
}

std::vector<Collector::AgentStats> AgentTable::Stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<Collector::AgentStats> stats;
  stats.reserve(agents_.size());
  for (const auto& [id, agent] : agents_) stats.push_back(agent.stats);
  return stats;
}

}  // namespace vcpulse::stream

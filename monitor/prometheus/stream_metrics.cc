#include "monitor/prometheus/stream_metrics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvm/base/clock.h"
#include "monitor/prometheus/exposition.h"

namespace vcpulse::prometheus {
namespace {

using Type = Exposition::Type;
using Agent = stream::Collector::AgentStats;

// A family of one series.
void AddOne(Exposition& out, std::string_view name, Type type, std::string_view help,
            uint64_t value) {
  out.Begin(name, type, help);
  out.Add({}, value);
}

// One family with a series per agent.
void AddPerAgent(Exposition& out, const stream::Collector::Stats& stats, std::string_view name,
                 Type type, std::string_view help, uint64_t Agent::* value) {
  out.Begin(name, type, help);
  for (const Agent& agent : stats.agents) out.Add({{"agent", agent.agent_id}}, agent.*value);
}

// The same of a time in ns, which may not be known.
void AddTimePerAgent(Exposition& out, const stream::Collector::Stats& stats, std::string_view name,
                     std::string_view help, std::optional<int64_t> Agent::* value) {
  out.Begin(name, Type::kGauge, help);
  for (const Agent& agent : stats.agents) {
    if (agent.*value) out.Add({{"agent", agent.agent_id}}, ToSeconds(*(agent.*value)));
  }
}

void AddAgents(Exposition& out, const stream::Collector::Stats& stats) {
  out.Begin("vcpulse_collector_agent_info", Type::kGauge,
            "Always 1; the labels say which host the agent is on.");
  for (const Agent& agent : stats.agents) {
    out.Add({{"agent", agent.agent_id}, {"host", agent.host_name}}, uint64_t{1});
  }
  AddPerAgent(out, stats, "vcpulse_collector_agent_connections", Type::kGauge,
              "Connections of the agent that are open.", &Agent::connections);
  AddPerAgent(out, stats, "vcpulse_collector_agent_streams_total", Type::kCounter,
              "Streams of the agent that were seen.", &Agent::streams);
  AddPerAgent(out, stats, "vcpulse_collector_agent_chunks_total", Type::kCounter,
              "Chunks of the agent that are on disk for good.", &Agent::chunks);
  AddPerAgent(out, stats, "vcpulse_collector_agent_bytes_total", Type::kCounter,
              "Bytes of those chunks.", &Agent::bytes);
  AddPerAgent(out, stats, "vcpulse_collector_agent_duplicates_total", Type::kCounter,
              "Chunks that came again, and were there.", &Agent::duplicates);
  AddPerAgent(out, stats, "vcpulse_collector_agent_gaps_total", Type::kCounter,
              "Losses that the agent reported.", &Agent::gaps);
  AddPerAgent(out, stats, "vcpulse_collector_agent_lost_records_total", Type::kCounter,
              "Records of those losses.", &Agent::lost_records);
  AddPerAgent(out, stats, "vcpulse_collector_agent_errors_total", Type::kCounter,
              "Connections of the agent that ended in an error.", &Agent::errors);
  AddTimePerAgent(out, stats, "vcpulse_collector_agent_lag_seconds",
                  "From the end of the latest chunk, by the agent's clock, until it was on disk.",
                  &Agent::lag_ns);
  AddTimePerAgent(out, stats, "vcpulse_collector_agent_last_chunk_timestamp_seconds",
                  "When the latest chunk was on disk, seconds since 1970.",
                  &Agent::last_chunk_realtime_ns);
}

}  // namespace

std::string TextOf(const stream::Uplink::Stats& stats) {
  Exposition out;
  AddOne(out, "vcpulse_stream_connected", Type::kGauge,
         "1 while a collector takes the stream, else 0.", stats.connected ? 1 : 0);
  AddOne(out, "vcpulse_stream_connects_total", Type::kCounter,
         "Connections that a collector welcomed.", stats.connects);
  AddOne(out, "vcpulse_stream_sent_chunks_total", Type::kCounter,
         "Chunks sent, again where they had to be.", stats.sent_chunks);
  AddOne(out, "vcpulse_stream_acknowledged_chunks_total", Type::kCounter,
         "Chunks that the collector has on disk for good.", stats.acknowledged_chunks);
  AddOne(out, "vcpulse_stream_lost_chunks_total", Type::kCounter,
         "Chunks that were dropped or could not be read any more.", stats.lost_chunks);
  AddOne(out, "vcpulse_stream_lost_records_total", Type::kCounter,
         "Records of those chunks; the timeline says which.", stats.lost_records);
  AddOne(out, "vcpulse_stream_waiting_chunks", Type::kGauge,
         "Chunks that are not acknowledged yet.", stats.waiting_chunks);
  AddOne(out, "vcpulse_stream_spool_bytes", Type::kGauge, "Bytes of the spool on disk.",
         stats.spool_bytes);
  AddOne(out, "vcpulse_stream_spool_memory_bytes", Type::kGauge, "Bytes of the spool in memory.",
         stats.spool_memory_bytes);
  AddOne(out, "vcpulse_stream_spool_limit_bytes", Type::kGauge,
         "Bytes that the spool may take on disk, or in memory where it has no disk.",
         stats.spool_limit_bytes);
  AddOne(out, "vcpulse_stream_queue_bytes", Type::kGauge,
         "Bytes that wait for the streaming thread.", stats.queue_bytes);
  return out.text();
}

std::string TextOf(const stream::Collector::Stats& stats) {
  Exposition out;
  AddOne(out, "vcpulse_collector_connections", Type::kGauge, "Connections that are open.",
         stats.connections);
  AddOne(out, "vcpulse_collector_accepted_connections_total", Type::kCounter,
         "Connections that were accepted.", stats.accepted);
  AddOne(out, "vcpulse_collector_refused_connections_total", Type::kCounter,
         "Connections turned away: too many, not permitted, or without a greeting.", stats.refused);
  AddOne(out, "vcpulse_collector_malformed_connections_total", Type::kCounter,
         "Connections closed because of invalid frames.", stats.malformed);
  AddOne(out, "vcpulse_collector_commits_total", Type::kCounter, "Rounds of write and sync.",
         stats.commits);
  AddOne(out, "vcpulse_collector_pending_bytes", Type::kGauge,
         "Memory that received chunks take which are not on disk for good, in bytes.",
         stats.pending_bytes);
  AddOne(out, "vcpulse_collector_followers", Type::kGauge, "Connections that follow streams.",
         stats.followers);
  AddOne(out, "vcpulse_collector_storage_failing", Type::kGauge,
         "1 while nothing can be written, so that nothing is acknowledged; else 0.",
         stats.storage_error.empty() ? 0 : 1);
  AddAgents(out, stats);
  return out.text();
}

}  // namespace vcpulse::prometheus

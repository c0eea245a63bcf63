#pragma once

// monitor/stream/nats streams through a NATS server with JetStream: the agents' uplink, the
// collector that consumes, a follower. Built where libnats is there. libnats is included in .cc
// files of this folder alone; what needs no server (subjects, the ledger) is pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// What each chunk is published on: vcpulse.v1.HOST.STREAM. HOST is the agent id as one token:
// letters, digits, - and _ stay, every other byte becomes =XX (hexadecimal), so that permissions
// can name one host ("vcpulse.v1.web-01=2Eexample.>"). STREAM is the stream's id, 32 hexadecimal
// digits.
inline constexpr char kAllSubjects[] = "vcpulse.v1.>";
// The JetStream stream that takes them.
inline constexpr char kJetStreamName[] = "VCPULSE";

struct Subject {
  std::string agent_id;
  timeline::StreamId stream{};
};

// The token of an agent id, and the subject of a stream of it. `agent_id` passed CheckAgentId.
std::string TokenOf(const std::string& agent_id);
std::string SubjectOf(const std::string& agent_id, const timeline::StreamId& stream);
// All streams of one agent.
std::string SubjectsOf(const std::string& agent_id);
// Of one agent, and no stream: for messages that ask and are not kept (NatsConnection::Probe).
std::string ProbeSubjectOf(const std::string& agent_id);
// What SubjectOf was given; nothing for any other text. Agent ids are checked (CheckAgentId).
std::optional<Subject> ParseSubject(const std::string& subject);

// Nats-Msg-Id, by which JetStream knows a chunk that it has: agent, stream, first record and what
// is in it (`content`, a checksum). JetStream holds ids against those of all hosts: so that none
// can guess another's, and have it pass for known, an id has what only the host itself knows.
std::string MessageIdOf(const std::string& agent_id, const timeline::StreamId& stream,
                        uint64_t first_sequence, uint32_t content);
// What a message's headers take where that id is all that they say: max_payload of a broker counts
// them. At most 847 bytes, of the longest agent id (kMaxChunkBytes).
size_t HeaderBytesOf(const std::string& message_id);

}  // namespace vcpulse::stream

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "google/protobuf/message.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// One VM's sample in the stream. The writer is given cumulative samples and the reader gives them
// back; deltas are made by core::Subtract on both sides.
struct TickEntry {
  uint32_t vm = 0;
  uint32_t epoch = 0;
  core::Sample sample;
  std::vector<core::Verdict> verdicts;  // one per vCPU
  // The sample before it in the same epoch, as the reader knows it; nothing at an epoch's start.
  // (The writer ignores it: it keeps its own.)
  const core::Sample* previous = nullptr;
};

// One record of a stream. Everything but ticks is the message of the public schema.
struct Entry {
  uint64_t sequence = 0;  // from 1; 0: context of a chunk (see EntrySink), not a record of its own
  std::variant<v1::Session, v1::VcpuSet, TickEntry, v1::Marker, v1::Gap, v1::LifeCycle,
               v1::ClockSnapshot, v1::Summary, v1::Profile, v1::Statistics, v1::HotAddresses,
               v1::Competitors>
      record;
};

// The instant of a record, CLOCK_MONOTONIC (a tick's: when the sampling thread woke); nothing for
// those that have none (session, profile, summary).
std::optional<int64_t> InstantOf(const Entry& entry);

// The same as a message without its sequence number; of a tick, which is none, an empty one.
v1::TimelineRecord RecordOf(const Entry& entry);

// The VM's number and epoch whose vCPU set must be read before a record that is no tick; nothing
// where it needs none. (Readers ignore statistics without it: a tick brings it.)
std::optional<std::pair<uint32_t, uint32_t>> SetNeededBy(const v1::TimelineRecord& record);

// The clocks of this host now, CLOCK_MONOTONIC first.
v1::ClockSnapshot TakeClockSnapshot();

// Makes every `string` field of `message`, nested ones too, valid UTF-8: each offending byte
// becomes '?'. A VM's name and a marker may be any bytes, and protobuf refuses to parse a whole
// message for one text that is not UTF-8, so a writer that let it through would lose a chunk.
void MakeTextsUtf8(google::protobuf::Message* message);

}  // namespace vcpulse::timeline

#pragma once

// A timeline in memory, chunk by chunk, and what reading gives back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"
#include "tests/fakes/synthetic_vm.h"

namespace vcpulse::timeline {

using Bytes = std::vector<uint8_t>;

// A tick as it went in or came out; `previous` by value.
struct SeenTick {
  uint64_t sequence = 0;
  uint32_t vm = 0;
  uint32_t epoch = 0;
  core::Sample sample{};
  std::vector<core::Verdict> verdicts{};
  std::optional<core::Sample> previous{};

  bool operator==(const SeenTick&) const = default;
};

// Everything that a reading handed over.
struct Seen {
  std::vector<SeenTick> ticks;
  std::vector<uint64_t> sequences;  // of all records but context
  std::vector<std::string> others;  // all but ticks: "sequence kind text", in order
  absl::StatusOr<ReadReport> report = absl::UnknownError("nothing was read");
};

inline std::string Describe(const Entry& entry) {
  const std::string sequence = std::to_string(entry.sequence) + " ";
  return sequence + std::visit(
                        [](const auto& record) -> std::string {
                          if constexpr (std::is_same_v<std::decay_t<decltype(record)>, TickEntry>) {
                            return "Tick";
                          } else {
                            return record.GetTypeName().substr(11) + " " +
                                   record.ShortDebugString();
                          }
                        },
                        entry.record);
}

inline EntrySink SinkInto(Seen* seen) {
  return [seen](const Entry& entry) {
    if (entry.sequence > 0) seen->sequences.push_back(entry.sequence);
    if (const auto* tick = std::get_if<TickEntry>(&entry.record)) {
      seen->ticks.push_back({entry.sequence, tick->vm, tick->epoch, tick->sample, tick->verdicts,
                             tick->previous ? std::optional(*tick->previous) : std::nullopt});
    } else {
      seen->others.push_back(Describe(entry));
    }
    return absl::OkStatus();
  };
}

inline Seen ReadBytes(std::span<const uint8_t> bytes, const TimeRange& range = {}) {
  Seen seen;
  seen.report = ReadTimelineBytes(bytes, SinkInto(&seen), range);
  return seen;
}

inline Bytes Concatenate(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Appends what it is given, one entry per call.
inline ByteSink CollectInto(std::vector<Bytes>* chunks) {
  return [chunks](std::span<const uint8_t> bytes) {
    chunks->emplace_back(bytes.begin(), bytes.end());
    return absl::OkStatus();
  };
}

inline v1::TimelineRecord MarkerRecord(std::string name, int64_t mono_ns) {
  v1::TimelineRecord record;
  record.mutable_marker()->set_name(std::move(name));
  record.mutable_marker()->set_mono_ns(mono_ns);
  return record;
}

inline v1::TimelineRecord SessionRecord(std::string host) {
  v1::TimelineRecord record;
  record.mutable_session()->set_host_name(std::move(host));
  return record;
}

inline v1::TimelineRecord SetRecord(v1::VcpuSet set) {
  v1::TimelineRecord record;
  *record.mutable_vcpu_set() = std::move(set);
  return record;
}

inline v1::ClockSnapshot ClockAt(int64_t mono_ns) {
  v1::ClockSnapshot clock;
  clock.set_mono_ns(mono_ns);
  return clock;
}

// A small recording: chunk 0 holds the Session, the VcpuSet and `ticks_per_chunk` ticks, each later
// one as many ticks; the last one ends with the Summary.
struct SmallTimeline {
  explicit SmallTimeline(size_t chunk_count = 4, uint8_t stream = 7, size_t ticks_per_chunk = 3,
                         size_t vcpus = 3) {
    const StreamId id = {stream};
    const auto writer = NewChunkWriter(id, CollectInto(&chunks));
    std::vector<fakes::Load> loads(vcpus, fakes::Load::kBusy);
    if (vcpus > 1) loads[1] = fakes::Load::kIdle;
    if (vcpus > 2) loads[2] = fakes::Load::kShared;
    fakes::SyntheticVm vm(loads, 100'000'000, stream);
    v1::TimelineRecord set;
    *set.mutable_vcpu_set() = vm.VcpuSet(1, 1);
    writer->Add(SessionRecord("small"), set.vcpu_set().mono_ns());
    writer->Add(set, set.vcpu_set().mono_ns());
    uint64_t sequence = 2;
    for (size_t c = 0; c < chunk_count; ++c) {
      for (size_t t = 0; t < ticks_per_chunk; ++t) {
        const core::Sample& sample = vm.Next();
        writer->AddTick(1, 1, sample, vm.Verdicts());
        ticks.push_back({++sequence, 1, 1, sample, vm.Verdicts(),
                         ticks.empty() ? std::nullopt : std::optional(ticks.back().sample)});
      }
      if (c + 1 == chunk_count) {
        v1::TimelineRecord summary;
        summary.mutable_summary()->set_ticks(ticks.size());
        writer->Add(summary, ticks.back().sample.wake_ns);
      }
      v1::ClockSnapshot clock;
      clock.set_mono_ns(ticks.back().sample.wake_ns + 1000);
      EXPECT_TRUE(writer->Flush(clock).ok());
    }
    bytes = Concatenate(chunks);
  }

  // The ticks of all chunks but these.
  std::vector<SeenTick> TicksWithout(const std::vector<size_t>& lost_chunks) const {
    const size_t per_chunk = ticks.size() / chunks.size();
    std::vector<SeenTick> kept;
    for (size_t i = 0; i < ticks.size(); ++i) {
      bool lost = false;
      for (const size_t c : lost_chunks) lost = lost || i / per_chunk == c;
      if (!lost) kept.push_back(ticks[i]);
    }
    return kept;
  }

  std::vector<Bytes> chunks;
  Bytes bytes;  // the whole file
  std::vector<SeenTick> ticks;
};

}  // namespace vcpulse::timeline

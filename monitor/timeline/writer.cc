#include "monitor/timeline/writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/core/check.h"
#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/entry.h"
#include "monitor/timeline/tick_columns.h"

namespace vcpulse::timeline {
namespace {

constexpr size_t kMaxBufferedRecords = 1u << 16;
// What the ticks of one more VM take beside their samples: its set and a column for each value.
constexpr size_t kContextBytes = 2048;

class ChunkWriter final : public RecordWriter {
 public:
  ChunkWriter(StreamId stream_id, ByteSink sink, const ChunkWriterOptions& options)
      : stream_id_(stream_id),
        sink_(std::move(sink)),
        max_buffered_bytes_(options.max_buffered_bytes),
        next_sequence_(options.first_sequence),
        first_sequence_(options.first_sequence) {}

  void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
               std::span<const core::Verdict> verdicts) override;
  void Add(v1::TimelineRecord record, int64_t mono_ns) override;
  void EndEpoch(uint32_t vm, uint32_t epoch) override;
  absl::Status Flush(const v1::ClockSnapshot& clock) override;

 private:
  struct Epoch {
    v1::VcpuSet set;
    TickRows rows;
    bool ended = false;
    bool needed_by_record = false;  // in the chunk that is being filled

    bool IsNeeded() const { return rows.ticks() > 0 || needed_by_record; }
  };

  // Makes room for a record of `bytes` and counts it in; gives its sequence number.
  uint64_t Admit(size_t bytes, int64_t mono_ns);
  // Writes what is buffered as one chunk, if anything; it is forgotten either way.
  absl::Status Cut();
  absl::Status WriteChunk();
  void FillPayload();
  void Forget();

  const StreamId stream_id_;
  const ByteSink sink_;
  ChunkEncoder encoder_;
  const size_t max_buffered_bytes_;
  uint64_t next_sequence_;
  std::map<std::pair<uint32_t, uint32_t>, Epoch> epochs_;  // by (vm, epoch)

  // Of the chunk that is being filled.
  v1::ChunkPayload payload_;  // its records as they come; the rest when it is cut
  uint64_t first_sequence_;
  int64_t first_mono_ns_ = std::numeric_limits<int64_t>::max();
  int64_t last_mono_ns_ = std::numeric_limits<int64_t>::min();
  size_t buffered_bytes_ = 0;

  v1::Session session_;
  v1::ClockSnapshot clock_;
  absl::Status early_cut_;  // the first error of a cut between two flushes
};

uint64_t ChunkWriter::Admit(size_t bytes, int64_t mono_ns) {
  if (buffered_bytes_ + bytes > max_buffered_bytes_ ||
      next_sequence_ - first_sequence_ >= kMaxBufferedRecords) {
    early_cut_.Update(Cut());
  }
  buffered_bytes_ += bytes;
  first_mono_ns_ = std::min(first_mono_ns_, mono_ns);
  last_mono_ns_ = std::max(last_mono_ns_, mono_ns);
  return next_sequence_++;
}

void ChunkWriter::AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                          std::span<const core::Verdict> verdicts) {
  const auto found = epochs_.find({vm, epoch});
  VCPULSE_CHECK(found != epochs_.end(), "a tick without its vCPU set");
  TickRows& rows = found->second.rows;
  VCPULSE_CHECK(sample.vcpus.size() == rows.vcpus && verdicts.size() == rows.vcpus,
                "a tick that does not fit its vCPU set");
  VCPULSE_CHECK(sample.FurtherGroups() == rows.further_events.size() || sample.vcpus.empty(),
                "a tick of other groups than its vCPU set");
  const size_t bytes = (rows.ticks() == 0 ? kContextBytes : 0) + sizeof(TickRows::Head) +
                       sample.vcpus.size() * sizeof(core::VcpuSample) +
                       sample.further.size() * sizeof(core::GroupSample);
  const uint64_t sequence = Admit(bytes, sample.wake_ns);
  rows.Append(sequence, sample, verdicts);
}

void ChunkWriter::Add(v1::TimelineRecord record, int64_t mono_ns) {
  VCPULSE_CHECK(!record.has_tick(), "ticks go through AddTick");
  MakeTextsUtf8(&record);
  record.set_sequence(Admit(record.ByteSizeLong(), mono_ns));
  if (record.has_session()) session_ = record.session();
  if (record.has_vcpu_set()) {
    const v1::VcpuSet& set = record.vcpu_set();
    const auto events = static_cast<size_t>(set.events_size());
    VCPULSE_CHECK(events <= core::kMaxEvents, "a vCPU set of too many events");
    const bool is_new = epochs_
                            .insert({{set.vm(), set.epoch()},
                                     {.set = set,
                                      .rows = {.vcpus = static_cast<size_t>(set.vcpus_size()),
                                               .events = events,
                                               .further_events = FurtherEvents(set)}}})
                            .second;
    VCPULSE_CHECK(is_new, "a second vCPU set for one epoch");
  }
  if (const auto set = SetNeededBy(record)) {
    const auto needed = epochs_.find(*set);
    if (needed != epochs_.end()) needed->second.needed_by_record = true;
  }
  *payload_.add_records() = std::move(record);
}

void ChunkWriter::EndEpoch(uint32_t vm, uint32_t epoch) {
  const auto found = epochs_.find({vm, epoch});
  if (found == epochs_.end()) return;
  if (found->second.IsNeeded()) {
    found->second.ended = true;  // until its last ticks and gaps are written
  } else {
    epochs_.erase(found);
  }
}

absl::Status ChunkWriter::Flush(const v1::ClockSnapshot& clock) {
  clock_ = clock;
  absl::Status status = std::exchange(early_cut_, absl::OkStatus());
  status.Update(Cut());
  return status;
}

absl::Status ChunkWriter::Cut() {
  if (next_sequence_ == first_sequence_) return absl::OkStatus();
  FillPayload();
  absl::Status status = WriteChunk();
  Forget();
  return status;
}

void ChunkWriter::FillPayload() {
  *payload_.mutable_session() = session_;
  *payload_.mutable_clock() = clock_;
  for (const auto& [key, epoch] : epochs_) {
    if (epoch.IsNeeded()) *payload_.add_vcpu_sets() = epoch.set;
    if (epoch.rows.ticks() == 0) continue;
    v1::VmTicks* ticks = payload_.add_ticks();
    ticks->set_vm(key.first);
    ticks->set_epoch(key.second);
    EncodeColumns(epoch.rows, ticks);
  }
}

absl::Status ChunkWriter::WriteChunk() {
  const absl::StatusOr<std::span<const uint8_t>> chunk =
      encoder_.Encode({.stream_id = stream_id_,
                       .first_sequence = first_sequence_,
                       .last_sequence = next_sequence_ - 1,
                       .first_mono_ns = first_mono_ns_,
                       .last_mono_ns = last_mono_ns_},
                      payload_);
  return chunk.ok() ? sink_(*chunk) : chunk.status();
}

void ChunkWriter::Forget() {
  payload_.Clear();
  first_sequence_ = next_sequence_;
  first_mono_ns_ = std::numeric_limits<int64_t>::max();
  last_mono_ns_ = std::numeric_limits<int64_t>::min();
  buffered_bytes_ = 0;
  std::erase_if(epochs_, [](const auto& entry) { return entry.second.ended; });
  for (auto& [key, epoch] : epochs_) {
    epoch.rows.StartNextChunk();
    epoch.needed_by_record = false;
  }
}

}  // namespace

bool IsWritable(const v1::VcpuSet& set) {
  constexpr auto kMost = static_cast<int>(core::kMaxEvents);
  return set.events_size() <= kMost &&
         set.further_groups_size() < static_cast<int>(core::kMaxGroups) &&
         std::ranges::all_of(
             set.further_groups(),
             [](const v1::EventGroup& group) { return group.events_size() <= kMost; });
}

std::unique_ptr<RecordWriter> NewChunkWriter(StreamId stream_id, ByteSink sink,
                                             const ChunkWriterOptions& options) {
  return std::make_unique<ChunkWriter>(stream_id, std::move(sink), options);
}

}  // namespace vcpulse::timeline

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "monitor/core/sample.h"
#include "monitor/core/verdict.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::timeline {

// Takes the bytes of one whole chunk (or of delimited records): all of them or an error.
using ByteSink = std::function<absl::Status(std::span<const uint8_t>)>;

// Whether samples of this set can be written: no release makes another one, but a file may say
// anything.
bool IsWritable(const v1::VcpuSet& set);

// Where the records of a recording go. One thread.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;

  // Adds one sample with its verdicts (one per vCPU). Its VcpuSet must have been added before, and
  // the samples of one (vm, epoch) come in order. A sample with as many vCPUs as the set, or it is
  // a bug (CHECK).
  virtual void AddTick(uint32_t vm, uint32_t epoch, const core::Sample& sample,
                       std::span<const core::Verdict> verdicts) = 0;
  // Adds any other record (tick must not be set); its sequence number is given here. `mono_ns` is
  // the instant of the record. The first record of a stream is its Session.
  virtual void Add(v1::TimelineRecord record, int64_t mono_ns) = 0;
  // The (vm, epoch) ended: no later tick needs its set.
  virtual void EndEpoch(uint32_t vm, uint32_t epoch) = 0;
  // Hands everything that was added to the sink. Called at least each second. After an error the
  // writer may be used on: what could not be written is lost and shows as a hole in the sequence.
  virtual absl::Status Flush(const v1::ClockSnapshot& clock) = 0;
};

struct ChunkWriterOptions {
  uint64_t first_sequence = 1;  // of the first record
  // Bytes of samples after which a chunk is cut without waiting for Flush. The default is about
  // 500 ticks of 64 vCPUs; such a chunk stays below kMaxPayloadBytes and kMaxChunkMemory whatever
  // the values are.
  size_t max_buffered_bytes = 4u << 20;
};
// What a chunk that goes over the wire is cut at: it fits into a frame (1 MiB) whatever the values
// are, for VMs of up to about 1,000 vCPUs.
inline constexpr size_t kBufferedBytesForWire = 384u << 10;

// Writes chunks (.vpt).
std::unique_ptr<RecordWriter> NewChunkWriter(StreamId stream_id, ByteSink sink,
                                             const ChunkWriterOptions& options = {});

// Writes plain length-delimited TimelineRecord messages.
std::unique_ptr<RecordWriter> NewDelimitedWriter(ByteSink sink);

}  // namespace vcpulse::timeline

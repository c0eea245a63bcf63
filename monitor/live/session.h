#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "kvm/base/output_file.h"
#include "kvm/bpf/thread_keeper.h"
#include "kvm/counters/perf_events.h"
#include "monitor/live/options.h"
#include "monitor/recorder/recording.h"
#include "monitor/timeline/writer.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::live {

// The parts of one recording put together: output, writer, recording. Not yet ticking.
class Session {
 public:
  // Looks at the host, checks the output, proves the counters where that is asked for, and writes
  // the Session record (into memory). Errors: an
  // output that cannot be written or none at all, counters that are required and not to be had.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const Options& options);

  recorder::Recording& recording() { return *recording_; }
  // How counters are read: "bpf" or "read".
  std::string_view reader() const { return keeper_ ? "bpf" : "read"; }
  // Why counters are read by read(2), where BPF was to be tried; empty where it is BPF, or read(2)
  // was asked for.
  const std::string& no_keeper_reason() const { return no_keeper_reason_; }
  // Nothing where none was asked for.
  const std::optional<v1::CounterProof>& proof() const { return proof_; }
  // Where the records go, for people: " in x.vpt", " to tcp:collector:4711", " in x.vpt and
  // tcp:collector:4711"; empty where their taker has no name.
  std::string Destination() const;
  // Of the timeline, handed over so far.
  uint64_t bytes() const { return bytes_; }

  // Hands everything so far to the output, which writes it on a thread of its own. Errors: of
  // OutputThread::Append, the first one of writing among them.
  absl::Status Flush();
  // Waits until the output has written it, but no longer than `deadline`. Errors: of writing.
  absl::Status Settle(const Deadline& deadline) const;
  // Whether the output falls behind so far that no more samples should be taken in.
  bool backlogged() const;
  // The output writes what it has, until `deadline`, and is closed. Errors: of
  // OutputThread::Finish.
  absl::Status Finish(const Deadline& deadline);
  // Adds the Summary record.
  void Summarize(uint64_t ticks, const std::string& end_reason);

 private:
  Session() = default;

  void AddClock();  // a record of the clocks now
  absl::Status OpenOutput(const Options& options, const timeline::StreamId& stream_id);
  absl::Status HandOver(std::span<const uint8_t> bytes);

  absl::Status LoadKeeper(const Options& options);

  kvm::KernelPerfEvents perf_;
  std::unique_ptr<kvm::ThreadKeeper> keeper_;  // null: counters are read by read(2)
  std::string no_keeper_reason_;               // why, where it was not asked for
  std::optional<v1::CounterProof> proof_;
  std::unique_ptr<OutputThread> output_;  // null: none was asked for
  std::optional<ChunkSink> chunk_sink_;
  uint64_t bytes_ = 0;
  std::unique_ptr<timeline::RecordWriter> writer_;
  std::unique_ptr<recorder::Recording> recording_;
};

}  // namespace vcpulse::live

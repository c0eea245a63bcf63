#include "monitor/stream/net/replay_uplink.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/stream/protocol/frame.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/chunk_scanner.h"
#include "monitor/timeline/recut.h"

namespace vcpulse::stream {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr int64_t kAnswerPatience_ns = 10'000'000'000;
constexpr int64_t kProgressPatience_ns = 30'000'000'000;
constexpr Milliseconds kStep{100};            // then it looks for progress and for a signal
constexpr int64_t kLook_ns = 100'000'000;     // between looks while a chunk is not due
constexpr uint64_t kMostAhead = 16u << 20;    // bytes that wait for acknowledgement
constexpr uint64_t kLongestChunk = 2u << 20;  // of a frame, and some
constexpr uint64_t kMemory = 2 * kMostAhead;  // so that nothing is ever pushed out

// When the chunks of one stream are due.
class ChunkPace {
 public:
  explicit ChunkPace(double speed) : speed_(speed) {}

  int64_t DueNs(int64_t recorded_ns, int64_t now_ns) {
    if (!first_ns_) {
      first_ns_ = recorded_ns;
      begin_ns_ = now_ns;
    }
    // In doubles: a header may say any instants.
    const double after_ns =
        (static_cast<double>(recorded_ns) - static_cast<double>(*first_ns_)) / speed_;
    constexpr double kLongest_ns = 1e18;
    return begin_ns_ + static_cast<int64_t>(std::clamp(after_ns, 0.0, kLongest_ns));
  }

 private:
  double speed_;
  std::optional<int64_t> first_ns_;
  int64_t begin_ns_ = 0;
};

// Waits by `wait`, again and again, while the collector acknowledges something now and then.
// Errors: Cancelled by a signal; DeadlineExceeded where nothing moves any more; others of `wait`.
absl::Status WaitWhileItMoves(const Uplink& uplink,
                              const std::function<absl::Status(Milliseconds)>& wait) {
  uint64_t acknowledged = uplink.stats().acknowledged_chunks;
  int64_t moved_ns = MonotonicNow_ns();
  while (true) {
    absl::Status status = wait(kStep);
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (WasStopped()) return absl::CancelledError("stopped by a signal");
    const uint64_t now_acknowledged = uplink.stats().acknowledged_chunks;
    const int64_t now_ns = MonotonicNow_ns();
    if (now_acknowledged != acknowledged) moved_ns = now_ns;
    acknowledged = now_acknowledged;
    if (now_ns - moved_ns < kProgressPatience_ns) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("the collector took nothing for 30 s: ", status.message()));
  }
}

// Waits for the first Welcome. Errors: Cancelled by a signal; of Uplink::AwaitConnected.
absl::Status AwaitCollector(Uplink& uplink) {
  const int64_t give_up_ns = MonotonicNow_ns() + kAnswerPatience_ns;
  while (true) {
    absl::Status status = uplink.AwaitConnected(kStep);
    if (!absl::IsDeadlineExceeded(status) || MonotonicNow_ns() >= give_up_ns) return status;
    if (WasStopped()) {
      return absl::CancelledError("stopped by a signal before a collector answered");
    }
  }
}

// Sends the chunks of one file, in order.
class FileSender {
 public:
  using Say = std::function<void(const std::string&)>;  // takes a line for people

  FileSender(Uplink& uplink, const std::optional<double>& speed, const Say& say)
      : uplink_(uplink), speed_(speed), say_(say) {}

  // Errors: of reading, of the collector, Cancelled by a signal.
  absl::Status SendAll(timeline::ByteSource& source, const std::string& name);

  uint64_t chunks() const { return chunks_; }
  uint64_t bytes() const { return bytes_; }
  const timeline::ReadReport& report() const { return report_; }

 private:
  void BeginStream(const timeline::StreamId& id);
  absl::Status SendWhatIsThere(const timeline::ChunkHeader& header,
                               std::span<const uint8_t> payload);
  absl::Status SendContext(const timeline::ChunkHeader& header, std::span<const uint8_t> payload);
  absl::Status AwaitDue(int64_t due_ns);
  absl::Status SendInPieces(const timeline::ChunkHeader& header);
  absl::Status SendChunk(std::span<const uint8_t> chunk);
  void TellMissing(uint64_t next);
  void TellLost(const v1::LostRecords& lost);

  Uplink& uplink_;
  const std::optional<double> speed_;
  const Say& say_;
  std::optional<timeline::StreamId> stream_;
  std::optional<ChunkPace> pace_;
  uint64_t next_sequence_ = 1;
  uint64_t known_to_ = 0;  // the file had records up to this one, readable or not
  uint64_t chunks_ = 0;
  uint64_t bytes_ = 0;
  timeline::ReadReport report_;
  timeline::ChunkDecoder decoder_;
  std::vector<uint8_t> chunk_;
};

absl::Status FileSender::SendAll(timeline::ByteSource& source, const std::string& name) {
  timeline::ChunkScanner scanner(&source, &report_.damages);
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) break;
    const timeline::ChunkHeader& header = (*found)->header;
    BeginStream(header.stream_id);
    const auto payload = scanner.ReadPayload(**found);
    if (!payload.ok()) return payload.status();
    if (header.first_sequence <= header.last_sequence) {
      known_to_ = std::max(known_to_, header.last_sequence);
    }
    if (!payload->has_value()) continue;
    if (absl::Status status = SendWhatIsThere(header, **payload); !status.ok()) return status;
  }
  if (!scanner.recognised()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a vcpulse timeline (no chunk of one was found in it)"));
  }
  TellMissing(known_to_ + 1);
  return absl::OkStatus();
}

void FileSender::BeginStream(const timeline::StreamId& id) {
  if (stream_ == id) return;
  if (stream_) TellMissing(known_to_ + 1);
  stream_ = id;
  next_sequence_ = 1;
  known_to_ = 0;
  pace_.reset();
  if (speed_) pace_.emplace(*speed_);
}

absl::Status FileSender::SendWhatIsThere(const timeline::ChunkHeader& header,
                                         std::span<const uint8_t> payload) {
  if (header.first_sequence > header.last_sequence) return SendContext(header, payload);
  if (header.first_sequence < next_sequence_) return absl::OkStatus();  // repeats what was sent
  if (pace_) {
    absl::Status due = AwaitDue(pace_->DueNs(header.last_mono_ns, MonotonicNow_ns()));
    if (!due.ok()) return due;
  }
  TellMissing(header.first_sequence);
  const auto head = timeline::EncodeChunkHeader(header);
  chunk_.assign(head.begin(), head.end());
  chunk_.insert(chunk_.end(), payload.begin(), payload.end());
  next_sequence_ = header.last_sequence + 1;
  if (chunk_.size() <= kMaxChunkBytes) return SendChunk(chunk_);
  return SendInPieces(header);
}

// Looks again and again whether the collector has refused what was sent so far.
absl::Status FileSender::AwaitDue(int64_t due_ns) {
  while (true) {
    const int64_t now_ns = MonotonicNow_ns();
    if (now_ns >= due_ns) return absl::OkStatus();
    absl::Status status = WaitUntil(std::min(due_ns, now_ns + kLook_ns));
    if (status.ok()) status = uplink_.AwaitRoom(kMemory + kMostAhead, Milliseconds(0));
    if (!status.ok()) return status;
  }
}

// chunk_ is longer than what is sent as one.
absl::Status FileSender::SendInPieces(const timeline::ChunkHeader& header) {
  uint64_t next = header.first_sequence;
  absl::Status sent;
  const absl::Status recut =
      timeline::RecutChunk(chunk_, kMaxChunkBytes, [&](std::span<const uint8_t> piece) {
        sent = SendChunk(piece);
        const auto of_piece = timeline::DecodeChunkHeader(piece);
        if (sent.ok() && of_piece.ok()) next = of_piece->last_sequence + 1;
        return sent;
      });
  if (recut.ok() || !sent.ok()) return sent;
  say_(absl::StrCat("warning: records ", next, " to ", header.last_sequence,
                    " cannot be sent: ", recut.message()));
  v1::LostRecords lost = timeline::LostChunk(header, v1::LostRecords::REASON_TOO_LARGE);
  lost.set_first_sequence(next);
  TellLost(lost);
  return absl::OkStatus();
}

// A chunk without records: it may say what was lost before it, on the way to a collector.
absl::Status FileSender::SendContext(const timeline::ChunkHeader& header,
                                     std::span<const uint8_t> payload) {
  if (!decoder_.Open(header, payload).ok() || !decoder_.context().has_lost()) {
    return absl::OkStatus();
  }
  const v1::LostRecords lost = decoder_.context().lost();
  if (lost.first_sequence() < next_sequence_ || lost.last_sequence() < lost.first_sequence()) {
    return absl::OkStatus();
  }
  TellMissing(lost.first_sequence());
  known_to_ = std::max(known_to_, lost.last_sequence());
  next_sequence_ = lost.last_sequence() + 1;
  TellLost(lost);
  return absl::OkStatus();
}

absl::Status FileSender::SendChunk(std::span<const uint8_t> chunk) {
  absl::Status room = WaitWhileItMoves(
      uplink_, [this](Milliseconds patience) { return uplink_.AwaitRoom(kMostAhead, patience); });
  if (!room.ok()) return room;
  // The queue has room for all that AwaitRoom lets through, and a chunk more.
  if (!uplink_.Offer(chunk)) {
    return absl::InternalError(absl::StrCat(
        "a chunk of ", SizeText(chunk.size()), " found no room on its way to the collector, and ",
        "what follows is not sent; start again: the collector goes on where it is"));
  }
  ++chunks_;
  bytes_ += chunk.size();
  return absl::OkStatus();
}

// The records from next_sequence_ to the one before `next` are not in the file, or damaged.
void FileSender::TellMissing(uint64_t next) {
  if (next <= next_sequence_) return;
  v1::LostRecords lost;
  lost.set_first_sequence(next_sequence_);
  lost.set_last_sequence(next - 1);
  lost.set_reason(v1::LostRecords::REASON_NOT_HELD);
  next_sequence_ = next;
  report_.lost_records += lost.last_sequence() - lost.first_sequence() + 1;
  TellLost(lost);
}

void FileSender::TellLost(const v1::LostRecords& lost) { uplink_.OfferLost(*stream_, lost); }

}  // namespace

absl::StatusOr<Replayed> ReplayToCollector(timeline::ByteSource& source, const std::string& name,
                                           const std::optional<double>& speed,
                                           Uplink::Options options) {
  options.sends_old_streams = true;
  options.ends_when_refused = true;
  options.max_queue_bytes = kMostAhead + kLongestChunk;
  options.spool = {.max_memory_bytes = kMemory};
  if (!options.say) options.say = [](const std::string&) {};
  const std::function<void(const std::string&)> say = options.say;
  StopWaitsOnSignals();
  const auto uplink = Uplink::Start(std::move(options));
  if (!uplink.ok()) return uplink.status();
  if (absl::Status status = AwaitCollector(**uplink); !status.ok()) return status;
  FileSender sender(**uplink, speed, say);
  absl::Status sent = sender.SendAll(source, name);
  // What was read before an error is brought there too.
  if (!absl::IsCancelled(sent) && !absl::IsDeadlineExceeded(sent)) {
    const absl::Status finished = WaitWhileItMoves(
        **uplink, [&](Milliseconds patience) { return (*uplink)->Finish(patience); });
    if (sent.ok()) sent = finished;
  }
  return Replayed{.ended = sent,
                  .chunks = sender.chunks(),
                  .bytes = sender.bytes(),
                  .uplink = (*uplink)->stats(),
                  .report = sender.report()};
}

}  // namespace vcpulse::stream

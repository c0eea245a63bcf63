#include "monitor/stream/net/peer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kvm/base/clock.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

// What a connection keeps for its next words, at most.
constexpr size_t kKeptBytes = 16 << 10;
// Acknowledgements and pings for an agent that does not take them.
constexpr size_t kMaxOutputBytes = 256 << 10;
// What a place in a queue takes, at most.
constexpr uint64_t kQueuedFrames = 2 * sizeof(SharedFrames);
constexpr int64_t kWriteDeadline_ns = 30'000'000'000;
// For a peer to read the last words, before the connection goes.
constexpr std::chrono::seconds kLinger{2};

}  // namespace

Peer::Peer(asio::io_context& context, uint64_t id, Arrival arrival, const SessionLimits& limits,
           Owner& owner, std::shared_ptr<Buffered> buffered)
    : id_(id),
      arrival_(std::move(arrival)),
      limits_(limits),
      owner_(owner),
      session_(limits,
               {.hello =
                    [this](const v1::Hello& from_peer) {
                      hello = from_peer;
                      return owner_.Hello(*this, from_peer);
                    },
                .chunk =
                    [this](const timeline::ChunkHeader& header, std::span<const uint8_t> bytes) {
                      return owner_.Chunk(*this, header, bytes);
                    },
                .gap = [this](const v1::LostRecords& lost) { return owner_.Gap(*this, lost); },
                .clock =
                    [this](const v1::ClockSnapshot& clock) {
                      int64_t offset_ns = 0;
                      if (clock.mono_ns() > 0 &&
                          !__builtin_sub_overflow(clock.mono_ns(), MonotonicNow_ns(), &offset_ns)) {
                        peer_clock_offset_ns = offset_ns;
                      }
                    }},
               MonotonicNow_ns()),
      timer_(context),
      buffered_(std::move(buffered)),
      rate_credit_(static_cast<double>(limits.max_bytes_per_second)),
      rate_ns_(MonotonicNow_ns()) {
  Account();
}

Peer::~Peer() {
  DropQueue();
  buffered_->connections -= memory_;
}

void Peer::Account() {
  constexpr size_t kFixed = 8 << 10;  // the socket, the session, their handlers
  const size_t now = kFixed + arrival_.channel->memory() + writing_.capacity() + session_.memory();
  const bool more = now > memory_;
  buffered_->connections += now - memory_;  // modulo 2^64
  memory_ = now;
  if (more) owner_.HoldsMore();
}

void Peer::Start() {
  arrival_.channel->Handshake([self = shared_from_this()](const ErrorCode& error) {
    if (self->ended_) return;
    if (error)
      return self->Fail(absl::UnauthenticatedError(self->arrival_.channel->Describe(error)));
    self->secured_ = true;
    self->Read();
    self->Flush();
  });
}

void Peer::ReadOn() {
  if (!ended_ && secured_ && !reading_) Read();
}

void Peer::Read() {
  if (ended_ || reading_) return;
  const int64_t now_ns = MonotonicNow_ns();
  // What is not read stays in the socket, and slows the peer down.
  if (!owner_.MayRead(*this) || pending_bytes > 2 * limits_.credit_bytes) return Pause(now_ns);
  if (const int64_t wait_ns = WaitBeforeRead_ns(now_ns); wait_ns > 0) {
    Pause(now_ns);
    reading_ = true;
    timer_.expires_after(std::chrono::nanoseconds(wait_ns));
    timer_.async_wait([self = shared_from_this()](const ErrorCode&) {
      self->reading_ = false;
      self->Read();
    });
    return;
  }
  ExcusePause(now_ns);
  paused_ns_.reset();
  reading_ = true;
  arrival_.channel->ReadSome(
      [self = shared_from_this()](const ErrorCode& error, std::span<const uint8_t> bytes) {
        self->reading_ = false;
        if (self->lingering_) return error ? self->Close() : self->LingerRead();
        if (self->ended_) return;
        if (error) return self->Fail(absl::CancelledError("closed by the peer"));
        self->TakeBytes(bytes);
      });
}

int64_t Peer::WaitBeforeRead_ns(int64_t now_ns) {
  const int64_t wait_ns = owner_.NextRead_ns(*this, now_ns) - now_ns;
  if (limits_.max_bytes_per_second == 0) return wait_ns;
  const auto rate = static_cast<double>(limits_.max_bytes_per_second);
  const double passed_s = static_cast<double>(now_ns - rate_ns_) * 1e-9;
  rate_credit_ = std::min(rate, rate_credit_ + passed_s * rate);
  rate_ns_ = now_ns;
  if (rate_credit_ >= 0) return wait_ns;
  constexpr int64_t kMore_ns = 1'000'000;  // not once for every few bytes
  return std::max(wait_ns, static_cast<int64_t>(-rate_credit_ / rate * 1e9) + kMore_ns);
}

void Peer::Pause(int64_t now_ns) {
  if (!paused_ns_) paused_ns_ = now_ns;
}

void Peer::ExcusePause(int64_t now_ns) {
  if (!paused_ns_) return;
  session_.Excuse(now_ns - *paused_ns_);
  paused_ns_ = now_ns;
}

void Peer::TakeBytes(std::span<const uint8_t> bytes) {
  rate_credit_ -= static_cast<double>(bytes.size());
  const int64_t begin_ns = MonotonicNow_ns();
  const absl::Status status = session_.Receive(bytes, begin_ns);
  const int64_t end_ns = MonotonicNow_ns();
  owner_.Took(*this, end_ns - begin_ns, end_ns);
  if (ended_) return;
  if (!status.ok()) return Fail(status);
  Account();
  if (ended_) return;
  Flush();
  Read();
}

void Peer::Tick(const v1::ClockSnapshot& clock, int64_t now_ns) {
  if (ended_) return;
  ExcusePause(now_ns);
  if (write_pending_ && now_ns - write_begun_ns_ > kWriteDeadline_ns) {
    return Fail(absl::DeadlineExceededError("takes nothing of what is sent to it"));
  }
  if (absl::Status status = session_.Tick(clock, now_ns); !status.ok()) return Fail(status);
  Flush();
}

void Peer::Flush() {
  if (session_.output().size() > kMaxOutputBytes && !ended_) {
    session_.output().clear();
    return Fail(absl::DeadlineExceededError("takes too little of what is sent to it"));
  }
  if (!secured_ || write_pending_) return;
  if (!session_.output().empty()) {
    writing_.clear();
    writing_.swap(session_.output());
  } else if (!queue_.empty()) {
    writing_frames_ = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= writing_frames_->size();
    buffered_->frames -= kQueuedFrames;
  } else {
    return;
  }
  write_pending_ = true;
  write_begun_ns_ = MonotonicNow_ns();
  arrival_.channel->WriteAll(
      writing_frames_ ? asio::buffer(*writing_frames_) : asio::buffer(writing_),
      [self = shared_from_this()](const ErrorCode& error, size_t) {
        self->write_pending_ = false;
        self->writing_frames_.reset();
        if (self->writing_.capacity() > kKeptBytes) std::vector<uint8_t>().swap(self->writing_);
        self->Account();
        if (error)
          return self->lingering_ ? self->Close() : self->Fail(absl::CancelledError("closed"));
        self->Flush();
        if (self->lingering_ && !self->write_pending_) self->Linger();
      });
}

void Peer::Queue(SharedFrames frames) {
  if (ended_) return;
  queued_bytes_ += frames->size();
  buffered_->frames += kQueuedFrames;
  queue_.push_back(std::move(frames));
}

void Peer::DropQueue() {
  buffered_->frames -= queue_.size() * kQueuedFrames;
  queue_.clear();
  queued_bytes_ = 0;
}

void Peer::Refuse(v1::Error::Code code, const std::string& reason) {
  if (ended_) return;
  session_.Refuse(code, reason);
  ended_ = true;
  DropQueue();
  Linger();
}

void Peer::Dismiss(v1::Error::Code code, const std::string& reason) {
  if (ended_) return;
  std::vector<uint8_t> earlier;
  earlier.swap(session_.output());
  session_.Refuse(code, reason);
  Queue(std::make_shared<const std::vector<uint8_t>>(std::move(session_.output())));
  session_.output() = std::move(earlier);
  ended_ = true;
  Linger();
}

void Peer::Fail(const absl::Status& why) {
  if (ended_) return;
  ended_ = true;
  DropQueue();
  owner_.Ended(*this, absl::IsCancelled(why) ? absl::OkStatus() : why);
  Linger();
}

void Peer::Linger() {
  if (!secured_) return Close();
  const bool begins = !lingering_;
  lingering_ = true;
  if (begins) {
    timer_.expires_after(kLinger);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error) self->Close();
    });
  }
  Flush();
  if (write_pending_) return;
  // Were it closed with bytes unread, the peer might lose our last words.
  arrival_.channel->EndWriting();
  LingerRead();
}

void Peer::LingerRead() {
  if (reading_) return;  // its end closes, below the timer
  reading_ = true;
  arrival_.channel->ReadSome(
      [self = shared_from_this()](const ErrorCode& error, std::span<const uint8_t>) {
        self->reading_ = false;
        if (error) return self->Close();
        self->LingerRead();
      });
}

void Peer::DropInput() {
  session_.DropInput();
  Account();
}

void Peer::Close() {
  ended_ = true;
  DropInput();
  timer_.cancel();
  arrival_.channel->Close();
}

}  // namespace vcpulse::stream

#include "monitor/stream/net/uplink_loop.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/net/clocks.h"
#include "monitor/stream/protocol/refusal.h"
#include "monitor/timeline/clock_snapshot.h"
#include "monitor/timeline/lost_chunk.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kUplinkTick{250};
constexpr int64_t kSyncPeriod_ns = 5'000'000'000;
constexpr int64_t kSayDiskAgain_ns = 10'000'000'000;
// Read from the spool ahead of the socket.
constexpr size_t kMostReadAhead = 1 << 20;

// A stream that was refused is not tried again for so long, while there are others.
constexpr int64_t kRefusedFor_ns = 60'000'000'000;

// Whether a refusal is not about the stream or its agent: another collector may take it.
bool IsOfTheCollector(const v1::Error& refusal) {
  switch (refusal.code()) {
    case v1::Error::CODE_STORAGE:
    case v1::Error::CODE_BUSY:
    case v1::Error::CODE_TIMEOUT:
    case v1::Error::CODE_SHUTDOWN:
    case v1::Error::CODE_TAKEN_OVER:
      return true;
    default:
      return false;
  }
}

// For a connection that shows nothing but that one can be had.
timeline::StreamId RandomStreamId() {
  std::random_device random;
  timeline::StreamId id{};
  std::ranges::generate(id, [&] { return static_cast<uint8_t>(random() | 1); });
  return id;
}

}  // namespace

UplinkLoop::UplinkLoop(asio::io_context& context, const Uplink::Options& options,
                       std::unique_ptr<Spool> spool, std::function<void()> changed)
    : context_(context),
      options_(options),
      spool_(std::move(spool)),
      changed_(std::move(changed)),
      ticks_(context),
      retry_(context),
      backoff_(options.first_backoff, options.longest_backoff) {
  for (const timeline::StreamId& stream : spool_->streams()) found_.insert(stream);
}

void UplinkLoop::Begin() {
  StartTicking();
  ConnectIfNeeded();
}

void UplinkLoop::StartTicking() {
  ticks_.expires_after(kUplinkTick);
  ticks_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->ended_) return;
    self->Tick();
    self->StartTicking();
  });
}

void UplinkLoop::Tick() {
  const int64_t now_ns = MonotonicNow_ns();
  if (now_ns - synced_ns_ > kSyncPeriod_ns) {
    synced_ns_ = now_ns;
    spool_->Sync();
  }
  SayDiskStatus();
  if (session_) {
    if (absl::Status status = session_->Tick(Clocks(), now_ns); !status.ok()) {
      return Fail(std::string(status.message()));
    }
    Pump();
  }
  ConnectIfNeeded();  // a stream that was refused may have its turn again
  changed_();
}

void UplinkLoop::Take(const std::deque<Offered>& offered) {
  for (const Offered& one : offered) {
    if (one.header) {
      spool_->Add(*one.header, one.chunk);
    } else {
      spool_->AddLost(one.stream, one.lost);
    }
  }
  SayDiskStatus();
  TakeProgress();  // the collector may have had these before
  Pump();
  ConnectIfNeeded();
  changed_();
}

void UplinkLoop::WantConnection() {
  wanted_ = true;
  ConnectIfNeeded();
}

void UplinkLoop::Reconnect() {
  Disconnect();
  retry_.cancel();
  retry_pending_ = false;
  ConnectIfNeeded();
}

void UplinkLoop::End() {
  ended_ = true;
  ticks_.cancel();
  retry_.cancel();
  Disconnect();
  spool_->Sync();
}

std::optional<timeline::StreamId> UplinkLoop::Turn() const {
  const std::vector<timeline::StreamId> streams = spool_->streams();
  for (const timeline::StreamId& stream : streams) {
    const auto refused = refused_ns_.find(stream);
    if (refused == refused_ns_.end() || MonotonicNow_ns() - refused->second > kRefusedFor_ns) {
      return stream;
    }
  }
  return streams.empty() ? std::nullopt : std::optional(streams.front());
}

bool UplinkLoop::IsFree(const std::optional<timeline::StreamId>& turn) {
  return session_ && session_->welcomed() && turn && *turn != stream_ &&
         session_->output().empty() && !write_pending_;
}

void UplinkLoop::ConnectIfNeeded() {
  if (ended_ || !stats_.refusal.empty()) return;
  const std::optional<timeline::StreamId> turn = Turn();
  if (channel_ != nullptr || connecting_ != nullptr || retry_pending_) {
    if (!IsFree(turn)) return;
    Disconnect();
  }
  if (!turn && !wanted_) return;
  is_probe_ = !turn;
  stream_ = turn.value_or(RandomStreamId());
  connecting_ = Connect(context_, options_.addresses[address_], options_.credentials,
                        [self = shared_from_this()](auto channel) {
                          self->connecting_ = nullptr;
                          if (!self->ended_) self->Connected(std::move(channel));
                        });
}

void UplinkLoop::Connected(absl::StatusOr<std::shared_ptr<Channel>> channel) {
  if (!channel.ok()) return Fail(std::string(channel.status().message()));
  channel_ = *std::move(channel);
  write_pending_ = false;
  ++connection_;
  const Spool::Range range = is_probe_ ? Spool::Range{} : spool_->range(stream_);
  session_.emplace(options_.identity,
                   AgentSession::Held{.stream_id = stream_,
                                      .first_sequence = range.first_sequence,
                                      .next_sequence = range.next_sequence,
                                      .may_have_been_more =
                                          options_.sends_old_streams || found_.contains(stream_)},
                   Clocks(), MonotonicNow_ns());
  Flush();
  Read();
}

// Those of an old stream were another machine's, or another boot's.
v1::ClockSnapshot UplinkLoop::Clocks() const {
  return options_.sends_old_streams ? v1::ClockSnapshot() : timeline::TakeClockSnapshot();
}

void UplinkLoop::Read() {
  const uint64_t connection = connection_;
  channel_->ReadSome(asio::buffer(buffer_),
                     [self = shared_from_this(), connection](const ErrorCode& error, size_t bytes) {
                       if (connection != self->connection_ || self->channel_ == nullptr) return;
                       if (error) return self->Fail(self->channel_->Describe(error));
                       self->TakeBytes(bytes);
                     });
}

void UplinkLoop::TakeBytes(size_t bytes) {
  const bool was_welcomed = session_->welcomed();
  const absl::Status status = session_->Receive(std::span(buffer_).first(bytes), MonotonicNow_ns());
  if (session_->welcomed() && !was_welcomed) TakeWelcome();
  TakeProgress();
  if (!status.ok()) return Fail(std::string(status.message()));
  const uint64_t connection = connection_;
  Pump();
  if (connection != connection_ || channel_ == nullptr) return;
  Read();
  ConnectIfNeeded();
  changed_();
}

void UplinkLoop::TakeWelcome() {
  ++stats_.connects;
  stats_.last_error.clear();
  stats_.connected = true;
  wanted_ = false;
  // One that welcomes may still refuse what it is sent: after an error this is said once it has
  // not.
  if (is_probe_) return;  // nothing streams yet
  if (said_error_.empty() || spool_->stats().chunks == 0) SayStreaming();
}

void UplinkLoop::SayStreaming() {
  const std::string text = absl::StrCat("streaming to ", ToText(options_.addresses[address_]));
  if (said_streaming_ != text) options_.say(text);
  said_streaming_ = text;
  said_error_.clear();
}

void UplinkLoop::TakeProgress() {
  if (!session_ || !session_->welcomed() || is_probe_) return;
  if (session_->durable() == 0) return;
  const uint64_t before = spool_->stats().chunks;
  spool_->Acknowledge(stream_, session_->durable());
  const uint64_t after = spool_->stats().chunks;
  if (after == before) return;
  stats_.acknowledged_chunks += before - after;
  backoff_.Reset();  // this collector does its work
  refused_ns_.erase(stream_);
  SayStreaming();
}

void UplinkLoop::Pump() {
  if (!session_ || !session_->welcomed() || is_probe_) return;
  while (session_->output().size() < kMostReadAhead && SendNext()) {
  }
  Flush();
}

bool UplinkLoop::SendNext() {
  const auto item = spool_->At(stream_, session_->next_to_send());
  if (!item) return false;
  const int64_t now_ns = MonotonicNow_ns();
  if (item->is_lost) {
    session_->SendGap(item->lost, now_ns);
    return true;
  }
  if (item->bytes.size() > session_->welcome().max_frame_bytes()) {
    const v1::LostRecords lost =
        timeline::LostChunk(item->header, v1::LostRecords::REASON_TOO_LARGE);
    session_->SendGap(lost, now_ns);
    ++stats_.lost_chunks;
    stats_.lost_records += lost.last_sequence() - lost.first_sequence() + 1;
    return true;
  }
  if (!session_->MaySend(item->bytes.size())) return false;
  session_->SendChunk(item->header, item->bytes, now_ns);
  ++stats_.sent_chunks;
  return true;
}

void UplinkLoop::Flush() {
  if (!session_ || write_pending_ || session_->output().empty()) return;
  writing_.clear();
  writing_.swap(session_->output());
  write_pending_ = true;
  const uint64_t connection = connection_;
  channel_->WriteAll(asio::buffer(writing_),
                     [self = shared_from_this(), connection](const ErrorCode& error, size_t) {
                       if (connection != self->connection_ || self->channel_ == nullptr) return;
                       self->write_pending_ = false;
                       // What the collector said last is worth more than that writing failed:
                       // reading tells.
                       if (error) return;
                       self->Pump();
                       self->ConnectIfNeeded();
                     });
}

void UplinkLoop::Fail(const std::string& why) {
  const bool had_welcome = session_ && session_->welcomed();
  const bool is_elsewhere =
      session_ && session_->refusal() && IsOfTheCollector(*session_->refusal());
  // A stream that the collector does not take must not keep the others back.
  if (session_ && session_->refusal() && !is_elsewhere) refused_ns_[stream_] = MonotonicNow_ns();
  const bool ends = options_.ends_when_refused && session_ && session_->refusal() &&
                    NeedsPeople(session_->refusal()->code());
  const std::string text = absl::StrCat(ToText(options_.addresses[address_]), ": ", why);
  Disconnect();
  stats_.last_error = text;
  if (ends) {
    stats_.refusal = text;
    return changed_();
  }
  changed_();  // who hears of it sees it in the figures too
  if (said_error_ != text) {
    options_.say(absl::StrCat(had_welcome ? "the collector was lost: " : "cannot stream to ", text,
                              "; trying again"));
    said_error_ = text;
    said_streaming_.clear();
  }
  ScheduleRetry(!had_welcome || is_elsewhere);
}

void UplinkLoop::Disconnect() {
  if (connecting_ != nullptr) std::exchange(connecting_, nullptr)->Cancel();
  ++connection_;
  if (channel_ != nullptr) std::exchange(channel_, nullptr)->Close();
  session_.reset();
  stats_.connected = false;
}

void UplinkLoop::ScheduleRetry(bool next_address) {
  if (ended_) return;
  auto delay = std::chrono::milliseconds(0);
  if (next_address) address_ = (address_ + 1) % options_.addresses.size();
  if (!next_address || address_ == 0) delay = backoff_.Next();
  retry_pending_ = true;
  retry_.expires_after(delay);
  retry_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->ended_) return;
    self->retry_pending_ = false;
    self->ConnectIfNeeded();
  });
}

void UplinkLoop::SayDiskStatus() {
  const std::string now(spool_->disk_status().message());
  // A disk that is nearly full takes this and refuses that.
  if (now == said_disk_ || MonotonicNow_ns() - said_disk_ns_ < kSayDiskAgain_ns) return;
  said_disk_ns_ = MonotonicNow_ns();
  options_.say(now.empty()
                   ? std::string("the spool is written again")
                   : absl::StrCat("the spool cannot be written, chunks stay in memory: ", now));
  said_disk_ = now;
}

void UplinkLoop::Fill(Uplink::Stats& stats) const {
  stats = stats_;
  const Spool::Stats spool = spool_->stats();
  stats.lost_chunks += spool.lost_chunks;
  stats.lost_records += spool.lost_records;
  stats.untold_records = spool.untold_records;
  stats.waiting_chunks = spool.chunks;
  stats.spool_bytes = spool.disk_bytes;
  stats.spool_memory_bytes = spool.memory_bytes;
}

}  // namespace vcpulse::stream

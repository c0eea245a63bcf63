#include "monitor/stream/net/uplink_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/protocol/refusal.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kUplinkTick{250};
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

}  // namespace

UplinkLoop::UplinkLoop(asio::io_context& context, const Uplink::Options& options,
                       std::unique_ptr<Spool> spool, std::function<void()> changed)
    : UplinkWay(options, std::move(spool), std::move(changed)),
      context_(context),
      ticks_(context),
      backoff_(options.first_backoff, options.longest_backoff) {
  for (const timeline::StreamId& stream : spool_->streams()) found_.insert(stream);
}

void UplinkLoop::Begin() {
  StartTicking();
  ConnectIfNeeded();
}

UplinkLoop::SharedLink UplinkLoop::link() const {
  const auto* link = std::get_if<SharedLink>(&state_);
  return link == nullptr ? nullptr : *link;
}

void UplinkLoop::StartTicking() {
  ticks_.expires_after(kUplinkTick);
  ticks_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || std::holds_alternative<Over>(self->state_)) return;
    self->Tick();
    self->StartTicking();
  });
}

void UplinkLoop::Tick() {
  const int64_t now_ns = MonotonicNow_ns();
  CareForSpool(now_ns);
  if (const SharedLink link = this->link()) {
    if (absl::Status status = link->session.Tick(Clocks(), now_ns); !status.ok()) {
      return Fail(std::string(status.message()));
    }
    Pump(link);
  }
  ConnectIfNeeded();  // a stream that was refused may have its turn again
  changed_();
}

void UplinkLoop::Take(const std::deque<Offered>& offered) {
  Keep(offered);
  if (const SharedLink link = this->link()) {
    TakeProgress(*link);  // the collector may have had these before
    Pump(link);
  }
  ConnectIfNeeded();
  changed_();
}

void UplinkLoop::WantConnection() {
  wanted_ = true;
  ConnectIfNeeded();
}

void UplinkLoop::Reconnect() {
  if (std::holds_alternative<Over>(state_)) return;
  Disconnect();
  ConnectIfNeeded();
}

void UplinkLoop::End() {
  ticks_.cancel();
  Disconnect();
  if (!std::holds_alternative<Over>(state_)) state_ = Over{};
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

void UplinkLoop::ConnectIfNeeded() {
  const std::optional<timeline::StreamId> turn = Turn();
  if (const SharedLink link = this->link();
      link && link->session.welcomed() && turn && turn != link->stream &&
      link->session.output().empty() && link->writing.empty()) {
    Disconnect();
  }
  if (!std::holds_alternative<Idle>(state_) || (!turn && !wanted_)) return;
  auto connected = [self = shared_from_this()](auto channel) {
    if (const absl::Status& status = channel.status(); !status.ok()) {
      return self->Fail(std::string(status.message()),
                        !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status));
    }
    self->BeginSession(*std::move(channel));
  };
  state_ = Connecting{.stream = turn,
                      .attempt = Connect(context_, options_.addresses[address_],
                                         options_.credentials, std::move(connected))};
}

void UplinkLoop::BeginSession(std::shared_ptr<Channel> channel) {
  const std::optional<timeline::StreamId> stream = std::get<Connecting>(state_).stream;
  AgentSession::Held held{.stream_id = stream ? *stream : timeline::RandomStreamId()};
  if (stream) {
    const Spool::Range range = spool_->range(*stream);
    held.first_sequence = range.first_sequence;
    held.next_sequence = range.next_sequence;
    held.start_realtime_ns = StartOf(*stream);
  }
  held.last_sent = LastSent(held.stream_id);
  const auto link = std::make_shared<Link>(
      Link{.stream = stream,
           .channel = std::move(channel),
           .session = AgentSession(options_.identity, held, Clocks(), MonotonicNow_ns())});
  state_ = link;
  Flush(link);
  Read(link);
}

std::optional<int64_t> UplinkLoop::StartOf(const timeline::StreamId& stream) const {
  const auto item = spool_->At(stream, 1);
  if (!item || item->is_lost) return std::nullopt;
  return RealtimeIn(item->header, item->bytes.subspan(item->header.header_bytes),
                    item->header.first_mono_ns);
}

std::optional<uint64_t> UplinkLoop::LastSent(const timeline::StreamId& stream) const {
  if (options_.sends_old_streams) return std::nullopt;
  if (found_.contains(stream)) {
    if (!spool_->found_all()) return std::nullopt;
    return spool_->range(stream).next_sequence - 1;
  }
  const auto sent = sent_.find(stream);
  return sent == sent_.end() ? 0 : sent->second;
}

std::string UplinkLoop::TakeConflict(const timeline::StreamId& stream) {
  if (options_.sends_old_streams || found_.contains(stream)) {
    refused_ns_[stream] = MonotonicNow_ns();
    return "";
  }
  spool_->Move(stream, timeline::RandomStreamId());
  sent_.erase(stream);
  ++stats_.stream_conflicts;
  return "; what is not acknowledged goes out under a new stream id";
}

// Those of an old stream were another machine's, or another boot's.
v1::ClockSnapshot UplinkLoop::Clocks() const {
  return options_.sends_old_streams ? v1::ClockSnapshot() : timeline::TakeClockSnapshot();
}

void UplinkLoop::Read(const SharedLink& link) {
  link->channel->ReadSome(
      [self = shared_from_this(), link](const ErrorCode& error, std::span<const uint8_t> bytes) {
        if (link != self->link()) return;
        if (error) return self->Fail(link->channel->Describe(error));
        self->TakeBytes(link, bytes);
      });
}

void UplinkLoop::TakeBytes(const SharedLink& link, std::span<const uint8_t> bytes) {
  AgentSession& session = link->session;
  const bool was_welcomed = session.welcomed();
  const absl::Status status = session.Receive(bytes, MonotonicNow_ns());
  if (session.welcomed() && !was_welcomed) TakeWelcome(*link);
  TakeProgress(*link);
  if (!status.ok()) {
    const bool is_conflict = absl::IsAlreadyExists(status) && link->stream;
    const bool is_other_protocol =
        !session.welcomed() && (absl::IsDataLoss(status) || absl::IsUnimplemented(status));
    return Fail(
        absl::StrCat(status.message(), is_conflict ? TakeConflict(*link->stream) : std::string()),
        is_other_protocol);
  }
  Pump(link);
  Read(link);
  ConnectIfNeeded();
  changed_();
}

void UplinkLoop::TakeWelcome(const Link& link) {
  ++stats_.connects;
  stats_.last_error.clear();
  stats_.obstacle.clear();
  unusable_.clear();
  wanted_ = false;
  // One that welcomes may still refuse what it is sent: after an error this is said once it has
  // not.
  if (!link.stream) return;  // nothing streams yet
  if (said_error_.empty() || spool_->stats().chunks == 0) SayStreaming();
}

void UplinkLoop::SayStreaming() {
  const std::string text = absl::StrCat("streaming to ", ToText(options_.addresses[address_]));
  if (said_streaming_ != text) options_.say(text);
  said_streaming_ = text;
  said_error_.clear();
}

void UplinkLoop::TakeProgress(const Link& link) {
  if (!link.streams() || link.session.durable() == 0) return;
  const uint64_t before = spool_->stats().chunks;
  spool_->Acknowledge(*link.stream, link.session.durable());
  const uint64_t after = spool_->stats().chunks;
  if (after == before) return;
  stats_.acknowledged_chunks += before - after;
  backoff_.Reset();  // this collector does its work
  refused_ns_.erase(*link.stream);
  SayStreaming();
}

void UplinkLoop::Pump(const SharedLink& link) {
  while (link->streams() && link->session.output().size() < kMostReadAhead && SendNext(*link)) {
    uint64_t& sent = sent_[*link->stream];
    sent = std::max(sent, link->session.next_to_send() - 1);  // also after one that was behind
  }
  Flush(link);
}

bool UplinkLoop::SendNext(Link& link) {
  AgentSession& session = link.session;
  const auto item = spool_->At(*link.stream, session.next_to_send());
  if (!item) return false;
  const int64_t now_ns = MonotonicNow_ns();
  if (item->is_lost) {
    session.SendGap(item->lost, now_ns);
    return true;
  }
  if (item->bytes.size() > session.welcome().max_frame_bytes()) {
    const v1::LostRecords lost =
        timeline::LostChunk(item->header, v1::LostRecords::REASON_TOO_LARGE);
    session.SendGap(lost, now_ns);
    ++stats_.lost_chunks;
    stats_.lost_records += lost.last_sequence() - lost.first_sequence() + 1;
    return true;
  }
  if (!session.MaySend(item->bytes.size())) return false;
  session.SendChunk(item->header, item->bytes, now_ns);
  ++stats_.sent_chunks;
  return true;
}

void UplinkLoop::Flush(const SharedLink& link) {
  if (!link->writing.empty() || link->session.output().empty()) return;
  link->writing.swap(link->session.output());
  link->channel->WriteAll(asio::buffer(link->writing),
                          [self = shared_from_this(), link](const ErrorCode& error, size_t) {
                            if (link != self->link()) return;
                            link->writing.clear();
                            // What the collector said last is worth more than that writing failed:
                            // reading tells.
                            if (error) return;
                            self->Pump(link);
                            self->ConnectIfNeeded();
                          });
}

void UplinkLoop::Fail(const std::string& why, bool needs_people) {
  const SharedLink link = this->link();
  const bool had_welcome = link && link->session.welcomed();
  const std::optional<v1::Error> refusal = link ? link->session.refusal() : std::nullopt;
  const bool is_elsewhere =
      (refusal && IsOfTheCollector(*refusal)) || (link && link->session.acknowledges_nothing());
  // A stream that the collector does not take must not keep the others back.
  if (refusal && !is_elsewhere && link->stream) refused_ns_[*link->stream] = MonotonicNow_ns();
  const std::string text = absl::StrCat(ToText(options_.addresses[address_]), ": ", why);
  Disconnect();
  stats_.last_error = text;
  needs_people = needs_people || (refusal && NeedsPeople(refusal->code()));
  if (needs_people) {
    unusable_.insert(address_);
  } else {
    unusable_.erase(address_);
  }
  const bool is_obstacle =
      needs_people && (had_welcome || unusable_.size() == options_.addresses.size());
  stats_.obstacle = is_obstacle ? text : std::string();
  if (options_.ends_when_refused && is_obstacle) {
    state_ = Over{.refusal = text};
    return changed_();
  }
  changed_();  // who hears of it sees it in the figures too
  if (said_error_ != text) {
    options_.say(absl::StrCat(had_welcome ? "the collector was lost: " : "cannot stream to ", text,
                              "; trying again"));
    said_error_ = text;
    said_streaming_.clear();
  }
  Wait(!had_welcome || is_elsewhere);
}

void UplinkLoop::Disconnect() {
  if (const auto* connecting = std::get_if<Connecting>(&state_)) connecting->attempt->Cancel();
  if (const SharedLink link = this->link()) link->channel->Close();
  state_ = Idle{};
}

void UplinkLoop::Wait(bool for_next_address) {
  auto delay = std::chrono::milliseconds(0);
  if (for_next_address) address_ = (address_ + 1) % options_.addresses.size();
  if (!for_next_address || address_ == 0) delay = backoff_.Next();
  asio::steady_timer& timer = state_.emplace<Waiting>(asio::steady_timer(context_, delay)).timer;
  timer.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || !std::holds_alternative<Waiting>(self->state_)) return;
    self->state_ = Idle{};
    self->ConnectIfNeeded();
  });
}

void UplinkLoop::Fill(Uplink::Stats& stats) const {
  stats = stats_;
  const SharedLink link = this->link();
  stats.connected = link && link->session.welcomed();
  if (const auto* over = std::get_if<Over>(&state_)) stats.refusal = over->refusal;
  FillFromSpool(stats);
}

}  // namespace vcpulse::stream

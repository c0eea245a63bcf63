#include "monitor/stream/nats/uplink_way.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/nats/broker_ack.h"
#include "monitor/stream/nats/publish_ledger.h"
#include "monitor/stream/nats/subject.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/net/uplink_way.h"
#include "monitor/timeline/chunk_encoder.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kTick{250};
// After a refusal, before anything is published again.
constexpr int64_t kPauseAfterRefusal_ns = 1'000'000'000;
constexpr int64_t kProbePeriod_ns = 1'000'000'000;
constexpr PublishLedger::Token kProbeToken = 0;  // of no chunk
constexpr int64_t kLongestElection_ns = 15'000'000'000;
constexpr int64_t kLongestPause_ns = 30'000'000'000;
// Of the spool: what has to be free before acknowledged chunks may stay for the margin.
constexpr uint64_t kFreePart = 8;

constexpr char kMakeStream[] =
    "no stream of the broker takes vcpulse's chunks: make one with `vcpulse collect --from ADDR "
    "--make-stream`";

// Answers come to subjects of this host's own, so that it needs to hear no others
// (docs/fleet.md#who-may-do-what).
NatsUplinkOptions WithOwnInbox(NatsUplinkOptions options, const std::string& agent_id) {
  options.server.inbox_prefix = absl::StrCat("_INBOX_", TokenOf(agent_id));
  return options;
}

class NatsWay final : public UplinkWay, public std::enable_shared_from_this<NatsWay> {
 public:
  NatsWay(asio::io_context& context, const Uplink::Options& options, std::unique_ptr<Spool> spool,
          std::function<void()> changed, const NatsUplinkOptions& nats)
      : UplinkWay(options, std::move(spool), std::move(changed)),
        context_(context),
        nats_(WithOwnInbox(nats, options.identity.agent_id)),
        ticks_(context),
        ledger_({.margin_ns = nats.margin.count()}),
        backoff_(options.first_backoff, options.longest_backoff) {
    for (const timeline::StreamId& stream : spool_->streams()) {
      begins_[stream] = spool_->range(stream).first_sequence;
    }
  }

  void Begin() override {
    Connect();
    StartTicking();
  }
  void Take(const std::deque<Offered>& offered) override;
  void WantConnection() override {}
  void Reconnect() override {
    if (!is_over_) Connect();
  }
  void End() override {
    is_over_ = true;
    ticks_.cancel();
    if (connecting_.joinable()) connecting_.join();
    connection_.reset();
    Release();
    spool_->Sync();
  }
  void Fill(Uplink::Stats& stats) const override;

 private:
  void StartTicking();
  void Tick();
  using Opened = absl::StatusOr<std::unique_ptr<NatsConnection>>;
  void Connect();
  void TakeOpened(uint64_t attempt, Opened opened);
  // Runs `then` here if the connection that it is about still is the one.
  template <typename Then>
  auto Here(Then then);
  void TakeConnected();
  // Asks whether the broker would take a chunk of this host, until it has said so.
  void Probe();
  void TakeProof();
  void TakeAnswer(uint64_t token, const std::string& answer, bool no_responders);
  void NoteDelivered();
  void Pump();
  bool PublishNext(const timeline::StreamId& stream);
  absl::Status Publish(const timeline::StreamId& stream, const PublishLedger::Item& item,
                       std::span<const uint8_t> bytes);
  // Lets go of what the broker has had for long enough; of more where the spool is nearly full.
  void Release();
  void Fail(const std::string& why, bool needs_people);
  void PauseBefore(int64_t now_ns);

  asio::io_context& context_;
  const NatsUplinkOptions nats_;
  asio::steady_timer ticks_;
  PublishLedger ledger_;
  Backoff backoff_;
  std::unique_ptr<NatsConnection> connection_;
  uint64_t attempt_ = 0;  // the number of connection_
  // Connecting waits for 2 s for each server that does not answer, and for names to be resolved:
  // chunks go into the spool meanwhile, and so are neither lost by a crash nor for want of room.
  std::thread connecting_;
  bool is_connected_ = false;
  bool is_proven_ = false;  // that it takes chunks
  int64_t probed_ns_ = 0;
  bool is_over_ = false;
  int64_t connect_again_ns_ = 0;  // 0: connection_ does that by itself
  int64_t begun_ns_ = 0;          // of the attempt
  int64_t pause_until_ns_ = 0;
  int64_t pause_ns_ = 0;
  int64_t nobody_since_ns_ = 0;                    // answers; 0: somebody does
  std::map<timeline::StreamId, uint64_t> begins_;  // of streams that were found in the spool
  // Chunks that the broker does not take: their streams and first records.
  std::set<std::pair<timeline::StreamId, uint64_t>> too_large_;
  std::string said_error_;
  bool said_streaming_ = false;
};

void NatsWay::StartTicking() {
  ticks_.expires_after(kTick);
  ticks_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->is_over_) return;
    self->Tick();
    self->StartTicking();
  });
}

void NatsWay::Tick() {
  const int64_t now_ns = MonotonicNow_ns();
  CareForSpool(now_ns);
  if (connect_again_ns_ != 0 && now_ns >= connect_again_ns_) Connect();
  constexpr int64_t kPatience_ns = 2'500'000'000;
  if (connection_ != nullptr && !is_connected_ && now_ns - begun_ns_ > kPatience_ns) {
    const std::string error = connection_->LastError();
    Fail(error.empty() ? "no server answers" : error, false);
  }
  if (is_connected_ && ledger_.IsOverdue(now_ns)) {
    Fail("the broker acknowledges nothing of what was published", false);
    PauseBefore(now_ns);
    Connect();
  }
  if (now_ns - probed_ns_ > kProbePeriod_ns) Probe();
  Release();
  Pump();
  changed_();
}

template <typename Then>
auto NatsWay::Here(Then then) {
  return [weak = weak_from_this(), attempt = attempt_, then](auto... arguments) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    asio::post(self->context_, [weak, attempt, then, arguments...] {
      const auto way = weak.lock();
      if (way == nullptr || way->attempt_ != attempt || way->is_over_) return;
      if (way->connection_ != nullptr) then(*way, arguments...);
    });
  };
}

void NatsWay::Connect() {
  connection_.reset();
  ledger_.Interrupted();
  is_connected_ = is_proven_ = false;
  connect_again_ns_ = 0;
  const uint64_t attempt = ++attempt_;
  if (connecting_.joinable()) return;  // once that one has ended
  begun_ns_ = MonotonicNow_ns();
  nobody_since_ns_ = 0;
  NatsConnection::Events events{
      .connected = Here([](NatsWay& way) { way.TakeConnected(); }),
      .disconnected = Here([](NatsWay& way) {
        way.is_connected_ = way.is_proven_ = false;
        way.begun_ns_ = MonotonicNow_ns();
        way.ledger_.Interrupted();
        way.changed_();
      }),
      .trouble = Here([](NatsWay& way, const std::string& why, bool needs_people) {
        way.Fail(why, needs_people);
      }),
      .closed = Here([](NatsWay& way, const std::string& why, bool needs_people) {
        way.is_connected_ = way.is_proven_ = false;
        way.ledger_.Interrupted();
        way.connect_again_ns_ =
            MonotonicNow_ns() + std::chrono::nanoseconds(way.backoff_.Next()).count();
        way.Fail(why.empty() ? "the connection was closed" : why, needs_people);
      })};
  connecting_ = std::thread([self = shared_from_this(), attempt, events = std::move(events)] {
    pthread_setname_np(pthread_self(), "vcpulse-connect");
    auto opened = std::make_shared<Opened>(NatsConnection::Open(self->nats_.server, events));
    asio::post(self->context_, [weak = self->weak_from_this(), attempt, opened] {
      if (const auto way = weak.lock()) way->TakeOpened(attempt, std::move(*opened));
    });
  });
}

void NatsWay::TakeOpened(uint64_t attempt, Opened opened) {
  if (is_over_) return;  // End has joined it
  connecting_.join();
  if (attempt != attempt_) return Connect();  // somebody wanted another one meanwhile
  absl::Status status = opened.status();
  if (status.ok()) {
    connection_ = *std::move(opened);
    status = connection_->TakeAnswers(
        [take = Here([](NatsWay& way, uint64_t token, const std::string& answer, bool none) {
           way.TakeAnswer(token, answer, none);
         })](uint64_t token, std::string_view answer, bool none) {
          take(token, std::string(answer), none);
        });
    // What its events said until now was not heard.
    if (status.ok() && connection_->is_connected()) return TakeConnected();
    if (status.ok()) status = absl::UnavailableError(connection_->LastError());
  }
  ++attempt_;  // what that one says is not heard any more
  connection_.reset();
  connect_again_ns_ = MonotonicNow_ns() + std::chrono::nanoseconds(backoff_.Next()).count();
  Fail(std::string(status.message()),
       absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status));
}

void NatsWay::TakeConnected() {
  is_connected_ = true;
  stats_.last_error.clear();
  stats_.obstacle.clear();
  Probe();
  Pump();
  changed_();
}

void NatsWay::Probe() {
  if (!is_connected_ || is_proven_ || connection_ == nullptr) return;
  probed_ns_ = MonotonicNow_ns();
  static_cast<void>(  // asked again where it fails
      connection_->Probe(ProbeSubjectOf(options_.identity.agent_id), kProbeToken));
}

void NatsWay::TakeProof() {
  if (std::exchange(is_proven_, true)) return;
  ++stats_.connects;
  stats_.last_error.clear();
  stats_.obstacle.clear();
  nobody_since_ns_ = 0;
  pause_ns_ = pause_until_ns_ = 0;
}

void NatsWay::Take(const std::deque<Offered>& offered) {
  Release();
  Keep(offered);
  Pump();
  changed_();
}

void NatsWay::Pump() {
  if (!is_connected_ || connection_ == nullptr || is_over_) return;
  if (MonotonicNow_ns() < pause_until_ns_) return;
  for (const timeline::StreamId& stream : spool_->streams()) {
    while (PublishNext(stream)) {
    }
  }
}

bool NatsWay::PublishNext(const timeline::StreamId& stream) {
  if (!ledger_.MayPublish(0)) return false;  // before anything is read
  const auto begin = begins_.find(stream);
  const uint64_t next = ledger_.NextToPublish(stream, begin == begins_.end() ? 1 : begin->second);
  const auto item = spool_->At(stream, next);
  if (!item) return false;
  if (item->is_lost) {
    const std::vector<uint8_t> bytes = timeline::EncodeLostChunk(stream, item->lost);
    return ledger_.MayPublish(bytes.size()) && Publish(stream,
                                                       {.first = next,
                                                        .last = item->lost.last_sequence(),
                                                        .bytes = bytes.size(),
                                                        .is_loss = true},
                                                       bytes)
                                                   .ok();
  }
  if (!ledger_.MayPublish(item->bytes.size())) return false;
  const uint64_t headers = HeaderBytesOf(MessageIdOf(options_.identity.agent_id, stream, next, 0));
  if (item->bytes.size() + headers > connection_->max_message_bytes()) {
    const v1::LostRecords lost =
        timeline::LostChunk(item->header, v1::LostRecords::REASON_TOO_LARGE);
    if (too_large_.emplace(stream, next).second) {
      options_.say(absl::StrCat(options_.way_name, ": a chunk of ", item->bytes.size(),
                                " bytes is more than the broker takes (max_payload: ",
                                connection_->max_message_bytes(), "); it is reported as lost"));
      ++stats_.lost_chunks;
      stats_.lost_records += lost.last_sequence() - lost.first_sequence() + 1;
    }
    const std::vector<uint8_t> bytes = timeline::EncodeLostChunk(stream, lost);
    return Publish(stream, {.first = next, .last = lost.last_sequence(), .bytes = bytes.size()},
                   bytes)
        .ok();
  }
  if (!Publish(stream,
               {.first = next, .last = item->header.last_sequence, .bytes = item->bytes.size()},
               item->bytes)
           .ok()) {
    return false;
  }
  ++stats_.sent_chunks;
  return true;
}

absl::Status NatsWay::Publish(const timeline::StreamId& stream, const PublishLedger::Item& item,
                              std::span<const uint8_t> bytes) {
  const PublishLedger::Token token = ledger_.Published(stream, item, MonotonicNow_ns());
  absl::Status status = connection_->Publish(
      SubjectOf(options_.identity.agent_id, stream),
      MessageIdOf(options_.identity.agent_id, stream, item.first, timeline::Crc32c(bytes)), token,
      bytes);
  if (!status.ok()) {
    ledger_.Interrupted();
    PauseBefore(MonotonicNow_ns());
    Fail(std::string(status.message()), false);
  }
  return status;
}

void NatsWay::TakeAnswer(uint64_t token, const std::string& answer, bool no_responders) {
  if (no_responders) {
    if (token != kProbeToken) {
      ledger_.Interrupted();  // it may come back without its end
      PauseBefore(MonotonicNow_ns());
    }
    // While a cluster elects its leader nobody answers either.
    const int64_t now_ns = MonotonicNow_ns();
    if (nobody_since_ns_ == 0) nobody_since_ns_ = now_ns;
    const bool is_long = now_ns - nobody_since_ns_ > kLongestElection_ns;
    if (is_long || stats_.acknowledged_chunks == 0) Fail(kMakeStream, is_long);
    return changed_();
  }
  if (token == kProbeToken) {
    if (IsBrokerError(answer, NatsConnection::kProbeRefused)) TakeProof();
    Pump();
    return changed_();
  }
  const auto ack = ParseBrokerAck(answer);
  if (!ack.ok()) {
    ledger_.Refused(token);
    PauseBefore(MonotonicNow_ns());
    Fail(absl::StrCat("the broker refuses a chunk: ", ack.status().message()),
         absl::IsFailedPrecondition(ack.status()));
    return changed_();
  }
  if (ledger_.Acknowledged(token, *ack, MonotonicNow_ns())) {
    ++stats_.acknowledged_chunks;
  }
  NoteDelivered();
  Release();
  Pump();
  changed_();
}

void NatsWay::NoteDelivered() {
  TakeProof();
  stats_.last_error.clear();
  stats_.obstacle.clear();
  backoff_.Reset();
  pause_ns_ = 0;
  nobody_since_ns_ = 0;
  said_error_.clear();
  if (!std::exchange(said_streaming_, true))
    options_.say(absl::StrCat("streaming to ", options_.way_name));
}

void NatsWay::Release() {
  const Spool::Stats spool = spool_->stats();
  // Those that the broker has must not push out others that it does not have; nor where the disk
  // is full, so that chunks wait in memory.
  const auto is_nearly_full = [](uint64_t held, uint64_t most) {
    return held + most / kFreePart >= most;
  };
  const bool early = is_nearly_full(spool.memory_bytes, options_.spool.max_memory_bytes) ||
                     (!options_.spool.directory.empty() &&
                      is_nearly_full(spool.disk_bytes, options_.spool.max_disk_bytes));
  for (const auto& [stream, last] : ledger_.TakeReleased(MonotonicNow_ns(), early)) {
    spool_->Acknowledge(stream, last);
    const std::vector<timeline::StreamId> streams = spool_->streams();
    if (std::ranges::find(streams, stream) != streams.end()) continue;
    ledger_.Forget(stream);
    begins_.erase(stream);
  }
}

void NatsWay::PauseBefore(int64_t now_ns) {
  if (now_ns < pause_until_ns_) return;
  pause_ns_ = std::clamp(2 * pause_ns_, kPauseAfterRefusal_ns, kLongestPause_ns);
  pause_until_ns_ = now_ns + pause_ns_;
}

void NatsWay::Fail(const std::string& why, bool needs_people) {
  const std::string text = absl::StrCat(options_.way_name, ": ", why);
  stats_.last_error = text;
  stats_.obstacle = needs_people ? text : std::string();
  if (options_.ends_when_refused && needs_people) {
    is_over_ = true;
    stats_.refusal = text;
    return changed_();
  }
  changed_();  // who hears of it sees it in the figures too
  if (said_error_ == text) return;
  said_error_ = text;
  said_streaming_ = false;
  options_.say(absl::StrCat("cannot stream to ", text, "; trying again"));
}

void NatsWay::Fill(Uplink::Stats& stats) const {
  stats = stats_;
  stats.connected = is_connected_;
  FillFromSpool(stats);
  stats.waiting_chunks -= std::min(stats.waiting_chunks, ledger_.acknowledged_chunks());
  stats.untold_records -= std::min(stats.untold_records, ledger_.acknowledged_lost_records());
}

}  // namespace

std::function<std::shared_ptr<UplinkWay>(asio::io_context&, const Uplink::Options&,
                                         std::unique_ptr<Spool>, std::function<void()> changed)>
WayToNats(NatsUplinkOptions options) {
  return [options](asio::io_context& context, const Uplink::Options& uplink,
                   std::unique_ptr<Spool> spool, std::function<void()> changed) {
    return std::make_shared<NatsWay>(context, uplink, std::move(spool), std::move(changed),
                                     options);
  };
}

}  // namespace vcpulse::stream

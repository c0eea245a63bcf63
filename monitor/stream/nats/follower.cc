#include "monitor/stream/nats/follower.h"

#include <nats/nats.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/nats/jetstream.h"
#include "monitor/stream/nats/subject.h"

namespace vcpulse::stream {
namespace {

constexpr std::chrono::milliseconds kFollowAgainAfter{500};
constexpr int64_t kFollowPatience_ms = 100;
constexpr int64_t kQuiet_ns = 2'000'000'000;
constexpr int64_t kCheckPatience_ms = 2'000;
constexpr int kFollowBatch = 64;
// The consumer of a follower that is gone goes too; that of one that does not read for longer is
// made again, where it was.
constexpr int64_t kInactive_ns = 60'000'000'000;

struct DestroyFollowed {
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
};
using Followed = std::unique_ptr<natsSubscription, DestroyFollowed>;

struct DestroyMessages {
  void operator()(natsMsgList* list) const { natsMsgList_Destroy(list); }
};

// A consumer of its own, which forgets itself, and from which messages are asked for: one that is
// gone, with its stream or with the server's memory, answers so, and another goes on behind the
// last message that came.
class NatsFollower {
 public:
  NatsFollower(const NatsFollowOptions& options, const std::function<bool()>& stopped)
      : options_(options), stopped_(stopped) {}

  absl::Status Run() {
    while (!stopped_()) {
      absl::Status status = Prepare();
      if (status.ok()) {
        SayBack();
        status = Fetch();
      }
      if (!taken_.ok()) return taken_;
      if (status.ok()) continue;
      if (!follows_) return status;
      SayLost(status);
      subscription_.reset();
      jetstream_.reset();
      std::this_thread::sleep_for(kFollowAgainAfter);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare();
  // Where the stream goes on for this follower: behind what it has had; at the beginning of a
  // stream that was made since.
  absl::Status FindPlace();
  absl::Status Fetch();
  // Whether silence is that of hosts. In a cluster the consumer is on one server; where that dies,
  // nobody refuses what is asked of it.
  absl::Status CheckConsumer();
  void Take(natsMsg* message);

  void SayBack() {
    if (!is_lost_) return;
    is_lost_ = false;
    options_.say(absl::StrCat(options_.address, " is there again"));
  }
  // Once for each loss; and what else is wrong then.
  void SayLost(const absl::Status& status) {
    const std::string why(status.message());
    if (!is_lost_) {
      options_.say(absl::StrCat("the broker was lost: ", why, "; trying again"));
    } else if (!absl::IsUnavailable(status) && why != said_) {
      options_.say(absl::StrCat("cannot follow: ", why, "; trying again"));
    } else {
      return;
    }
    is_lost_ = true;
    said_ = why;
  }

  const NatsFollowOptions& options_;
  const std::function<bool()>& stopped_;
  std::unique_ptr<NatsConnection> connection_;
  JetStream jetstream_;
  Followed subscription_;
  bool follows_ = false;  // it has, once
  bool is_lost_ = false;
  std::string said_;
  int64_t heard_ns_ = 0;  // when the broker last handed out or answered
  int64_t made_ns_ = 0;   // when the stream was, by the broker
  uint64_t next_ = 1;     // message of it
  absl::Status taken_;    // the error of the owner's
};

absl::Status NatsFollower::FindPlace() {
  jsStreamInfo* info = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status =
      js_GetStreamInfo(&info, jetstream_.get(), kJetStreamName, nullptr, &code);
  if (status != NATS_OK) {
    return JetStreamError(*connection_, status, code,
                          absl::StrCat(options_.address, ": the stream ", kJetStreamName));
  }
  if (!follows_) {
    next_ = info->State.LastSeq + 1;
  } else if (info->Created != made_ns_) {
    next_ = 1;
  } else {
    next_ = std::min(next_, info->State.LastSeq + 1);  // a power cut may have cost its end
  }
  made_ns_ = info->Created;
  jsStreamInfo_Destroy(info);
  return absl::OkStatus();
}

absl::Status NatsFollower::Prepare() {
  if (connection_ != nullptr && connection_->is_closed()) {
    subscription_.reset();
    jetstream_.reset();
    connection_.reset();
  }
  if (connection_ == nullptr) {
    auto connection = ConnectNow(options_.server);
    if (!connection.ok()) return connection.status();
    connection_ = *std::move(connection);
  }
  if (!connection_->is_connected()) {
    const std::string why = connection_->LastError();
    return absl::UnavailableError(
        absl::StrCat(options_.address, ": ", why.empty() ? "no server answers" : why));
  }
  if (subscription_ != nullptr) return absl::OkStatus();
  if (absl::Status status = CheckJetStream(*connection_, options_.address); !status.ok()) {
    return status;
  }
  auto jetstream = OpenJetStream(*connection_);
  if (!jetstream.ok()) return jetstream.status();
  jetstream_ = *std::move(jetstream);
  if (absl::Status status = FindPlace(); !status.ok()) return status;
  const std::string subject = options_.agent_id ? SubjectsOf(*options_.agent_id) : kAllSubjects;
  jsSubOptions own;
  jsSubOptions_Init(&own);
  own.Stream = kJetStreamName;
  own.Config.AckPolicy = js_AckExplicit;
  own.Config.DeliverPolicy = js_DeliverByStartSequence;
  own.Config.OptStartSeq = next_;
  own.Config.InactiveThreshold = kInactive_ns;
  natsSubscription* made = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status =
      js_PullSubscribe(&made, jetstream_.get(), subject.c_str(), nullptr, nullptr, &own, &code);
  if (status != NATS_OK) {
    return JetStreamError(*connection_, status, code,
                          absl::StrCat(options_.address, ": a consumer"));
  }
  subscription_.reset(made);
  heard_ns_ = MonotonicNow_ns();
  follows_ = true;
  return absl::OkStatus();
}

absl::Status NatsFollower::CheckConsumer() {
  if (MonotonicNow_ns() - heard_ns_ < kQuiet_ns) return absl::OkStatus();
  jsOptions patience;
  jsOptions_Init(&patience);
  patience.Wait = kCheckPatience_ms;
  jsConsumerInfo* info = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status =
      natsSubscription_GetConsumerInfo(&info, subscription_.get(), &patience, &code);
  jsConsumerInfo_Destroy(info);
  heard_ns_ = MonotonicNow_ns();
  if (status == NATS_OK) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(options_.address, ": what it hands out is gone: ", NatsWords(status)));
}

absl::Status NatsFollower::Fetch() {
  natsMsgList list{};
  const std::unique_ptr<natsMsgList, DestroyMessages> owned(&list);
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status =
      natsSubscription_Fetch(&list, subscription_.get(), kFollowBatch, kFollowPatience_ms, &code);
  if (status == NATS_TIMEOUT) return CheckConsumer();
  heard_ns_ = MonotonicNow_ns();
  if (status != NATS_OK) {
    return absl::UnavailableError(absl::StrCat(options_.address, ": ", NatsWords(status)));
  }
  for (int i = 0; i < list.Count && taken_.ok(); ++i) Take(list.Msgs[i]);
  return absl::OkStatus();
}

void NatsFollower::Take(natsMsg* message) {
  jsMsgMetaData* place = nullptr;
  if (natsMsg_GetMetaData(&place, message) == NATS_OK)
    next_ = std::max(next_, place->Sequence.Stream + 1);
  jsMsgMetaData_Destroy(place);
  static_cast<void>(natsMsg_Ack(message, nullptr));
  const auto from = ParseSubject(natsMsg_GetSubject(message));
  const std::span bytes(reinterpret_cast<const uint8_t*>(natsMsg_GetData(message)),
                        static_cast<size_t>(std::max(natsMsg_GetDataLength(message), 0)));
  if (from) taken_ = options_.chunk(from->agent_id, bytes);
}

}  // namespace

absl::Status FollowNats(const NatsFollowOptions& options, const std::function<bool()>& stopped) {
  return NatsFollower(options, stopped).Run();
}

}  // namespace vcpulse::stream

#include "monitor/stream/nats/follower.h"

#include <nats/nats.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/nats/jetstream.h"
#include "monitor/stream/nats/subject.h"

namespace vcpulse::stream {
namespace {

constexpr std::chrono::milliseconds kFollowAgainAfter{500};
constexpr int64_t kNextPatience_ms = 100;

struct DestroyFollowed {
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
};
using Followed = std::unique_ptr<natsSubscription, DestroyFollowed>;

// From one connection, until it is lost (Unavailable) or `stopped` (OK). `follows` becomes true
// once it does.
absl::Status FollowOnce(const NatsFollowOptions& options, const std::function<bool()>& stopped,
                        bool& follows) {
  const auto connection = ConnectNow(options.server);
  if (!connection.ok()) return connection.status();
  if (absl::Status status = CheckJetStream(**connection, options.address); !status.ok()) {
    return status;
  }
  const auto jetstream = OpenJetStream(**connection);
  if (!jetstream.ok()) return jetstream.status();
  jsSubOptions ordered;
  jsSubOptions_Init(&ordered);
  ordered.Stream = kJetStreamName;
  ordered.Ordered = true;
  ordered.Config.DeliverPolicy = js_DeliverNew;
  const std::string subject = options.agent_id ? SubjectsOf(*options.agent_id) : kAllSubjects;
  natsSubscription* made = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  natsStatus status =
      js_SubscribeSync(&made, jetstream->get(), subject.c_str(), nullptr, &ordered, &code);
  const Followed subscription(made);
  follows = follows || status == NATS_OK;
  while (status == NATS_OK || status == NATS_TIMEOUT) {
    if (stopped()) return absl::OkStatus();
    natsMsg* message = nullptr;
    status = natsSubscription_NextMsg(&message, subscription.get(), kNextPatience_ms);
    if (status != NATS_OK) continue;
    const auto from = ParseSubject(natsMsg_GetSubject(message));
    const std::span bytes(reinterpret_cast<const uint8_t*>(natsMsg_GetData(message)),
                          static_cast<size_t>(std::max(natsMsg_GetDataLength(message), 0)));
    absl::Status taken = from ? options.chunk(from->agent_id, bytes) : absl::OkStatus();
    natsMsg_Destroy(message);
    if (!taken.ok()) return taken;
  }
  return absl::UnavailableError(absl::StrCat(options.address, ": ", natsStatus_GetText(status)));
}

}  // namespace

absl::Status FollowNats(const NatsFollowOptions& options, const std::function<bool()>& stopped) {
  bool follows = false;
  while (true) {
    absl::Status status = FollowOnce(options, stopped, follows);
    if (!absl::IsUnavailable(status) || !follows || stopped()) return status;
    options.say(absl::StrCat("the broker was lost: ", status.message(), "; trying again"));
    std::this_thread::sleep_for(kFollowAgainAfter);
  }
}

}  // namespace vcpulse::stream

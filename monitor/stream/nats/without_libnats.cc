// Built where libnats is not there: each says so.
#include "monitor/stream/nats/collector.h"
#include "monitor/stream/nats/follower.h"
#include "monitor/stream/nats/jetstream.h"
#include "monitor/stream/nats/uplink_way.h"
#include "monitor/stream/net/uplink_way.h"

namespace vcpulse::stream {
namespace {

absl::Status BuiltWithoutNats() {
  return absl::UnimplementedError(
      "this vcpulse was built without NATS: install libnats (libnats-dev) and build it again");
}

}  // namespace

class NatsConnection::Impl {};
NatsConnection::~NatsConnection() = default;
void CloseJetStream::operator()(__jsCtx*) const {}

std::string NamesOf(const NatsOptions&) { return ""; }

absl::Status CheckNatsOptions(const NatsOptions&) { return BuiltWithoutNats(); }

absl::StatusOr<std::unique_ptr<NatsConnection>> ConnectNow(
    const NatsOptions&, std::function<void(const std::string&)>) {
  return BuiltWithoutNats();
}

absl::StatusOr<std::string> MakeJetStream(const NatsConnection&, const JetStreamLimits&) {
  return BuiltWithoutNats();
}

absl::StatusOr<std::unique_ptr<Collector>> StartNatsCollector(NatsCollectorOptions) {
  return BuiltWithoutNats();
}

absl::Status FollowNats(const NatsFollowOptions&, const std::function<bool()>&) {
  return BuiltWithoutNats();
}

// CheckNatsOptions comes before it.
std::function<std::shared_ptr<UplinkWay>(boost::asio::io_context&, const Uplink::Options&,
                                         std::unique_ptr<Spool>, std::function<void()> changed)>
WayToNats(NatsUplinkOptions) {
  return {};
}

}  // namespace vcpulse::stream

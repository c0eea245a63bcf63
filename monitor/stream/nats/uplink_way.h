#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "monitor/stream/nats/connection.h"
#include "monitor/stream/net/uplink.h"

namespace vcpulse::stream {

// Brings what is in the spool to JetStream, each chunk unchanged under its own id (subject.h).
// Acknowledged chunks stay in the spool for `margin` (publish_ledger.h).
struct NatsUplinkOptions {
  NatsOptions server;
  std::chrono::nanoseconds margin{std::chrono::seconds(150)};
};

// For Uplink::Options::make_way. `options` passed CheckNatsOptions.
std::function<std::shared_ptr<UplinkWay>(boost::asio::io_context&, const Uplink::Options&,
                                         std::unique_ptr<Spool>, std::function<void()> changed)>
WayToNats(NatsUplinkOptions options);

}  // namespace vcpulse::stream

#pragma once

// Of the .cc files of this module: listening and connecting, for each kind of address. Includes
// Asio.

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/net/channel.h"
#include "monitor/stream/protocol/address.h"

namespace vcpulse::stream {

// Plain tcp is for this machine alone, unless it is wanted. Errors: InvalidArgument in one line.
absl::Status CheckSecure(const Address& address, bool allow_insecure);

// One that connects, until it has.
class ConnectAttempt {
 public:
  virtual ~ConnectAttempt() = default;
  // `done` is not called any more.
  virtual void Cancel() = 0;
};

// Connects, shakes hands where the address is tls (with the credentials as they are now), and calls
// `done` once, later, with the channel or why not: Unavailable (nobody listens, the connection was
// lost); DeadlineExceeded (no answer within 10 s); Unauthenticated (whoever answers speaks no TLS,
// or has no certificate for this host); of NewTlsContext.
std::shared_ptr<ConnectAttempt> Connect(
    boost::asio::io_context& context, const Address& address, const CredentialFiles& credentials,
    std::function<void(absl::StatusOr<std::shared_ptr<Channel>>)> done);

// Who came.
struct Arrival {
  std::shared_ptr<Channel> channel;  // before its handshake
  std::string from;                  // for people: "tcp 127.0.0.1:4711", "unix, user 1000"
  std::optional<uid_t> uid;          // unix: the peer's user
};

// Listens until it is destroyed.
class Listener {
 public:
  struct Options {
    Address address;
    bool others_may_connect = false;  // unix: mode 0666 instead of 0600
    // The context for the next connection; called for each. Only for tls.
    std::function<std::shared_ptr<TlsContext>()> tls;
    std::function<void(Arrival)> arrived;
  };

  // Errors: what the system said, naming the address and what to do.
  static absl::StatusOr<std::unique_ptr<Listener>> Listen(boost::asio::io_context& context,
                                                          Options options);
  virtual ~Listener() = default;

  // With the port that was taken for 0.
  virtual Address address() const = 0;

 protected:
  Listener() = default;
};

}  // namespace vcpulse::stream

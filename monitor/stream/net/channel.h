#pragma once

// Of the .cc files of this module: a connected byte stream, plain or TLS, behind one interface, so
// that the protocol's shells are written once. Includes Asio.

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/net/credentials.h"

namespace vcpulse::stream {

using ErrorCode = boost::system::error_code;
using TlsContext = boost::asio::ssl::context;

// One thread. A handler keeps the channel alive until it was called; after Close it is called with
// an error.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  using Done = std::function<void(const ErrorCode& error, size_t bytes)>;
  using Got = std::function<void(const ErrorCode& error, std::span<const uint8_t> bytes)>;

  virtual ~Channel() = default;

  // Before anything is read or written. Plain: done at once.
  virtual void Handshake(std::function<void(const ErrorCode& error)> done) = 0;
  // The bytes are there until `got` returns: a channel that waits holds no buffer for them, but
  // TLS, whose own are as large.
  virtual void ReadSome(Got got) = 0;
  virtual void WriteAll(boost::asio::const_buffer bytes, Done done) = 0;
  // No more will be written; what was written still arrives.
  virtual void EndWriting() = 0;
  virtual void Close() = 0;
  virtual size_t memory() const = 0;  // of its buffers, bytes

  // TLS: the names of the peer's certificate that may be agent ids (dNSName and URI). Nothing where
  // the channel has no certificates.
  virtual std::optional<std::vector<std::string>> PeerNames() const = 0;
  // TLS: whether the peer's certificate is one that a new connection with `context` would be taken
  // with, by its authorities, dates and revocations. Errors: Unauthenticated, in words for it.
  virtual absl::Status CheckPeer(TlsContext& context) const = 0;
  // TLS: whether that certificate has expired by now.
  virtual bool IsPeerExpired() const = 0;
  // Why it failed, for people: what the error says, and what was wrong with the peer's certificate.
  virtual std::string Describe(const ErrorCode& error) const = 0;
  virtual int descriptor() = 0;

 protected:
  Done KeepAlive(Done done) {
    return [self = shared_from_this(), done = std::move(done)](
               const ErrorCode& error, size_t bytes) { done(error, bytes); };
  }
};

// Sockets of Asio pass to the programs that are started, unless told otherwise.
void KeepFromChildren(int descriptor);

using PlainSocket = boost::asio::generic::stream_protocol::socket;

std::shared_ptr<Channel> NewPlainChannel(PlainSocket socket);

// Who a TLS channel is.
enum class TlsRole { kServer, kClient };
// TLS 1.3 alone, certificates of both sides, from the files as they are now. Errors: as
// CheckCredentials.
absl::StatusOr<std::shared_ptr<TlsContext>> NewTlsContext(const CredentialFiles& files,
                                                          TlsRole role);
// `host` is what a client verifies the server's certificate against.
std::shared_ptr<Channel> NewTlsChannel(boost::asio::ip::tcp::socket socket,
                                       std::shared_ptr<TlsContext> context, TlsRole role,
                                       const std::string& host);

}  // namespace vcpulse::stream

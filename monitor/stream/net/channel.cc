#include "monitor/stream/net/channel.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kRecordBytes = 16 << 10;  // of TLS, at most: no read brings more

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(PlainSocket socket) : socket_(std::move(socket)) {
    KeepFromChildren(socket_.native_handle());
    ErrorCode ignored;
    socket_.non_blocking(true, ignored);
  }

  void Handshake(std::function<void(const ErrorCode&)> done) override { done({}); }
  // Large reads at the cost of one buffer for all of a thread's channels.
  void ReadSome(Got got) override {
    auto read = [this, self = shared_from_this(),
                 got = std::move(got)](ErrorCode error = {}) mutable {
      thread_local std::vector<uint8_t> buffer(kReadBytes);
      const size_t bytes = error ? 0 : socket_.read_some(asio::buffer(buffer), error);
      was_full_ = bytes == buffer.size();
      if (error == asio::error::would_block) return ReadSome(std::move(got));
      got(error, std::span(buffer).first(bytes));
    };
    if (was_full_) return asio::post(socket_.get_executor(), std::move(read));  // there is more
    socket_.async_wait(PlainSocket::wait_read, std::move(read));
  }
  void WriteAll(asio::const_buffer bytes, Done done) override {
    asio::async_write(socket_, bytes, KeepAlive(std::move(done)));
  }
  void EndWriting() override {
    ErrorCode ignored;
    socket_.shutdown(PlainSocket::shutdown_send, ignored);
  }
  void Close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }
  size_t memory() const override { return 0; }
  std::optional<std::vector<std::string>> PeerNames() const override { return std::nullopt; }
  absl::Status CheckPeer(TlsContext& /*context*/) const override { return absl::OkStatus(); }
  bool IsPeerExpired() const override { return false; }
  std::string Describe(const ErrorCode& error) const override { return error.message(); }
  int descriptor() override { return socket_.native_handle(); }

 private:
  PlainSocket socket_;
  bool was_full_ = false;  // the last read
};

std::string TextOf(const ASN1_IA5STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> names;
  auto* alternatives = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type == GEN_DNS) names.push_back(TextOf(name->d.dNSName));
    if (name->type == GEN_URI) names.push_back(TextOf(name->d.uniformResourceIdentifier));
  }
  GENERAL_NAMES_free(alternatives);
  return names;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(tcp::socket socket, std::shared_ptr<TlsContext> context, TlsRole role,
             const std::string& host)
      : context_(std::move(context)),
        stream_(std::move(socket), *context_),
        role_(role),
        host_(host) {
    KeepFromChildren(descriptor());
    if (role_ == TlsRole::kServer) return;
    SSL* ssl = stream_.native_handle();
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);  // a CommonName is no host's name
    ErrorCode is_no_address;
    asio::ip::make_address(host, is_no_address);
    if (!is_no_address) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
      return;
    }
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());  // a server of several names shows the right one
  }

  void Handshake(std::function<void(const ErrorCode&)> done) override {
    stream_.async_handshake(
        role_ == TlsRole::kServer ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
        [self = shared_from_this(), done = std::move(done)](const ErrorCode& error) {
          done(error);
        });
  }
  void ReadSome(Got got) override {
    buffer_.resize(kRecordBytes);
    stream_.async_read_some(
        asio::buffer(buffer_),
        [this, self = shared_from_this(), got = std::move(got)](
            const ErrorCode& error, size_t bytes) { got(error, std::span(buffer_).first(bytes)); });
  }
  void WriteAll(asio::const_buffer bytes, Done done) override {
    asio::async_write(stream_, bytes, KeepAlive(std::move(done)));
  }
  // The end of the protocol is told by its own frames, so TLS needs no word of farewell.
  void EndWriting() override {
    ErrorCode ignored;
    stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void Close() override {
    ErrorCode ignored;
    stream_.lowest_layer().close(ignored);
  }
  size_t memory() const override { return buffer_.capacity(); }

  std::optional<std::vector<std::string>> PeerNames() const override {
    auto* ssl = const_cast<TlsChannel*>(this)->stream_.native_handle();
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return std::vector<std::string>{};
    std::vector<std::string> names = NamesOf(certificate);
    X509_free(certificate);
    return names;
  }

  absl::Status CheckPeer(TlsContext& context) const override {
    auto* ssl = const_cast<TlsChannel*>(this)->stream_.native_handle();
    const std::unique_ptr<X509, decltype(&X509_free)> peer(SSL_get1_peer_certificate(ssl),
                                                           X509_free);
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(
        X509_STORE_CTX_new(), X509_STORE_CTX_free);
    SSL_CTX* own = context.native_handle();
    if (!peer || !check ||
        X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(own), peer.get(),
                            SSL_get_peer_cert_chain(ssl)) != 1) {
      return absl::UnauthenticatedError("the peer's certificate cannot be checked");
    }
    X509_STORE_CTX_set_default(check.get(),
                               role_ == TlsRole::kServer ? "ssl_client" : "ssl_server");
    X509_STORE_CTX_set_flags(check.get(), X509_VERIFY_PARAM_get_flags(SSL_CTX_get0_param(own)));
    if (X509_verify_cert(check.get()) == 1) return absl::OkStatus();
    return absl::UnauthenticatedError(
        absl::StrCat("the peer's certificate is not taken any more: ",
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()))));
  }

  bool IsPeerExpired() const override {
    auto* ssl = const_cast<TlsChannel*>(this)->stream_.native_handle();
    const X509* peer = SSL_get0_peer_certificate(ssl);
    return peer != nullptr && X509_cmp_current_time(X509_get0_notAfter(peer)) < 0;
  }

  std::string Describe(const ErrorCode& error) const override {
    auto* ssl = const_cast<TlsChannel*>(this)->stream_.native_handle();
    const long verified = SSL_get_verify_result(ssl);
    if (verified == X509_V_OK) return absl::StrCat("TLS: ", error.message());
    const bool is_others =
        verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return absl::StrCat(
        "TLS: the peer's certificate is refused: ", X509_verify_cert_error_string(verified),
        is_others ? absl::StrCat(" (it does not name ", host_, ")") : "");
  }

  int descriptor() override { return stream_.lowest_layer().native_handle(); }

 private:
  std::shared_ptr<TlsContext> context_;  // outlives the stream
  asio::ssl::stream<tcp::socket> stream_;
  std::vector<uint8_t> buffer_;
  TlsRole role_;
  std::string host_;  // that a client connects to
};

}  // namespace

void KeepFromChildren(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

std::shared_ptr<Channel> NewPlainChannel(PlainSocket socket) {
  return std::make_shared<PlainChannel>(std::move(socket));
}

std::shared_ptr<Channel> NewTlsChannel(tcp::socket socket, std::shared_ptr<TlsContext> context,
                                       TlsRole role, const std::string& host) {
  return std::make_shared<TlsChannel>(std::move(socket), std::move(context), role, host);
}

}  // namespace vcpulse::stream

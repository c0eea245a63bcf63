#include <fcntl.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "monitor/stream/net/channel.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

absl::Status CheckGiven(const std::string& option, const std::string& path) {
  if (!path.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("TLS needs --cert, --key and --ca (files in PEM); ", option, " is missing"));
}

absl::Status CheckReadable(const std::string& option, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat(option, " ", path));
  return absl::OkStatus();
}

// OpenSSL's words carry no part of a key.
absl::Status Unusable(const std::string& option, const std::string& path, const ErrorCode& error) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", path, " cannot be used: ", error.message()));
}

absl::Status CheckDates(const TlsContext& context, const std::string& path) {
  const X509* own = SSL_CTX_get0_certificate(const_cast<TlsContext&>(context).native_handle());
  if (own == nullptr) return absl::OkStatus();
  if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cert ", path, " has expired: have it issued anew"));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(own)) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cert ", path, " is not valid yet: look at this machine's clock"));
  }
  return absl::OkStatus();
}

absl::Status CheckReadable(const CredentialFiles& files) {
  absl::Status readable = CheckReadable("--cert", files.certificate);
  readable.Update(CheckReadable("--key", files.key));
  readable.Update(CheckReadable("--ca", files.authorities));
  readable.Update(CheckReadable("--crl", files.revoked));
  return readable;
}

// The certificate of this end and its key.
absl::Status LoadOwn(const CredentialFiles& files, TlsContext& context) {
  ErrorCode error;
  context.use_certificate_chain_file(files.certificate, error);
  if (error) return Unusable("--cert", files.certificate, error);
  // Never asks a terminal for a passphrase.
  context.set_password_callback(
      [](size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
  context.use_private_key_file(files.key, TlsContext::pem, error);
  if (error) return Unusable("--key", files.key, error);
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--key ", files.key, " is not the key of --cert ", files.certificate));
  }
  return absl::OkStatus();
}

// Those that are named.
absl::Status Load(const CredentialFiles& files, TlsContext& context) {
  if (!files.certificate.empty()) {
    if (absl::Status status = LoadOwn(files, context); !status.ok()) return status;
  }
  ErrorCode error;
  if (!files.authorities.empty()) context.load_verify_file(files.authorities, error);
  if (error) return Unusable("--ca", files.authorities, error);
  if (!files.revoked.empty()) {
    X509_STORE* const store = SSL_CTX_get_cert_store(context.native_handle());
    X509_LOOKUP* const lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (lookup == nullptr ||
        X509_load_crl_file(lookup, files.revoked.c_str(), X509_FILETYPE_PEM) <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--crl ", files.revoked, " is not a list of revoked certificates (PEM)"));
    }
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.native_handle()), X509_V_FLAG_CRL_CHECK);
  }
  return CheckDates(context, files.certificate);
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsContext>> NewTlsContext(const CredentialFiles& files,
                                                          TlsRole role) {
  absl::Status status = CheckGiven("--cert", files.certificate);
  status.Update(CheckGiven("--key", files.key));
  status.Update(CheckGiven("--ca", files.authorities));
  status.Update(CheckReadable(files));
  if (!status.ok()) return status;
  auto context = std::make_shared<TlsContext>(role == TlsRole::kServer ? TlsContext::tlsv13_server
                                                                       : TlsContext::tlsv13_client);
  status = Load(files, *context);
  if (!status.ok()) return status;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(context->native_handle(), 0);  // each connection shows its certificate
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // idle ones keep little
  context->set_verify_mode(boost::asio::ssl::verify_peer |
                           boost::asio::ssl::verify_fail_if_no_peer_cert);
  return context;
}

absl::Status CheckCredentials(const CredentialFiles& files) {
  return NewTlsContext(files, TlsRole::kClient).status();
}

absl::Status CheckNamedCredentials(const CredentialFiles& files) {
  if (absl::Status status = CheckReadable(files); !status.ok()) return status;
  TlsContext context(TlsContext::tls_client);
  return Load(files, context);
}

std::string OwnHostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::string full(name.data());
  if (getaddrinfo(name.data(), nullptr, &hints, &found) == 0 && found != nullptr &&
      found->ai_canonname != nullptr && std::string_view(found->ai_canonname) != "localhost") {
    full = found->ai_canonname;
  }
  if (found != nullptr) freeaddrinfo(found);
  return full;
}

}  // namespace vcpulse::stream

#include "monitor/stream/nats/connection.h"

#include <nats/nats.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/stream/nats/nkey.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/protocol/address.h"

namespace vcpulse::stream {
namespace {

constexpr int64_t kConnectTimeout_ms = 2'000;
// A server that reads no more must not hold whoever publishes.
constexpr int64_t kWriteDeadline_ms = 2'000;
constexpr int64_t kReconnectWait_ms = 500;
constexpr int64_t kReconnectJitter_ms = 500;
constexpr int64_t kPingPeriod_ms = 5'000;
constexpr int kMostPingsOut = 2;

absl::Status ToStatus(natsStatus status, const std::string& what) {
  if (status == NATS_OK) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", natsStatus_GetText(status)));
}

absl::StatusOr<std::string> FirstLineOf(const std::string& path, std::string_view prefix) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && std::string_view(line).starts_with(prefix)) return line;
  }
  return absl::InvalidArgumentError(QuotedPath(path));
}

// Files that libnats would read at each connection, and go on without what it does not find there.
absl::Status CheckCredentialsFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto token = FirstLineOf(path, "eyJ");  // {" in base64
  const auto seed = FirstLineOf(path, "SU");
  if (token.ok() && seed.ok() && IsUserSeed(*seed)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--nats-creds: ", QuotedPath(path), " has no ",
      token.ok() ? "seed of a user that is whole (a line SU...)" : "JWT (a line eyJ...)",
      ": write it with `nsc generate creds`"));
}

absl::Status CheckNkeyFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto seed = FirstLineOf(path, "SU");
  const auto public_key = FirstLineOf(path, "U");
  const bool has_seed = seed.ok() && IsUserSeed(*seed);
  if (has_seed && public_key.ok() && IsUserPublicKey(*public_key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--nats-nkey: ", QuotedPath(path), " has no ",
                   has_seed ? "public key of a user that is whole (a line U...)"
                            : "seed of a user that is whole (a line SU...)",
                   ": write it with `nk -gen user -pubout`"));
}

// libnats says of them that SSL failed, and of no file which.
absl::Status CheckTlsFiles(const NatsOptions& options) {
  const absl::Status status = CheckNamedCredentials(
      {.certificate = options.certificate, .key = options.key, .authorities = options.authorities});
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

// Why none of the servers' names has an address; empty where one has.
std::string WhyUnresolved(const std::vector<std::string>& urls) {
  constexpr std::string_view kScheme = "nats://";
  std::string why;
  for (const std::string& url : urls) {
    const auto address = ParseDestination(absl::StrCat("tcp:", url.substr(kScheme.size())));
    if (!address.ok()) return "";
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(address->host.c_str(), nullptr, &hints, &found);
    if (error == 0) {
      freeaddrinfo(found);
      return "";
    }
    if (why.empty()) {
      why = absl::StrCat("the name ", Printable(address->host),
                         " cannot be resolved: ", gai_strerror(error));
    }
  }
  return why;
}

absl::Status CheckReadable(const std::string& what, const std::string& path) {
  if (path.empty() || std::ifstream(path).good()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": cannot read ", QuotedPath(path)));
}

// Words of libnats and of the server that go on until somebody changes something.
bool NeedsPeople(natsStatus status, const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  const auto has = [&lower](const char* part) { return lower.find(part) != std::string::npos; };
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
      return true;
    case NATS_SSL_ERROR:
      return has("certificate") || has("verify");  // else the peer may have died
    default:
      return has("violation") || has("authentication expired") || has("authentication revoked");
  }
}

}  // namespace

std::string NamesOf(const NatsOptions& options) {
  return absl::StrJoin(options.addresses.empty() ? options.urls : options.addresses, " or ");
}

std::string NatsWords(int status) {
  const char* last = nats_GetLastError(nullptr);
  return NatsWords(status, last == nullptr ? "" : last);
}

std::string NatsWords(int status, std::string_view last) {
  // "(conn.c:733): what it says"
  if (last.starts_with('(')) {
    const size_t end = last.find("): ");
    if (end != std::string_view::npos) last.remove_prefix(end + 3);
  }
  return last.empty() ? natsStatus_GetText(static_cast<natsStatus>(status)) : Printable(last);
}

absl::Status CheckNatsOptions(const NatsOptions& options) {
  if (options.urls.empty()) return absl::InvalidArgumentError("no NATS server is named");
  const int ways = (options.credentials.empty() ? 0 : 1) + (options.nkey.empty() ? 0 : 1) +
                   (options.user.empty() ? 0 : 1);
  if (ways > 1) {
    return absl::InvalidArgumentError(
        "--nats-creds, --nats-nkey and --nats-user: give one of them");
  }
  if (options.user.empty() != options.password_file.empty()) {
    return absl::InvalidArgumentError(
        "--nats-user and --nats-password-file belong together: give both");
  }
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError("--cert and --key belong together: give both");
  }
  absl::Status status = CheckReadable("--nats-creds", options.credentials);
  status.Update(CheckReadable("--nats-nkey", options.nkey));
  status.Update(CheckReadable("--nats-password-file", options.password_file));
  status.Update(CheckTlsFiles(options));
  status.Update(CheckCredentialsFile(options.credentials));
  status.Update(CheckNkeyFile(options.nkey));
  return status;
}

// libnats calls back also after its objects are destroyed, so callbacks are given a number, by
// which they find what is still there.
class NatsConnection::Impl {
 public:
  explicit Impl(Events events) : events_(std::move(events)) {}

  static std::shared_ptr<Impl> Make(Events events) {
    auto impl = std::make_shared<Impl>(std::move(events));
    Living& living = All();
    const std::lock_guard lock(living.mutex);
    impl->number_ = ++living.last;
    living.impls[impl->number_] = impl;
    return impl;
  }
  ~Impl() {
    Living& living = All();
    const std::lock_guard lock(living.mutex);
    living.impls.erase(number_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status Configure(const NatsOptions& options);
  absl::Status Connect(const NatsOptions& options);
  void Close();

  static void OnConnected(natsConnection*, void* closure) {
    Tell(closure, [](const Events& events) { events.connected(); });
  }
  static void OnDisconnected(natsConnection*, void* closure) {
    Tell(closure, [](const Events& events) { events.disconnected(); });
  }
  static void OnClosed(natsConnection* connection, void* closure) {
    const auto [why, needs_people] = ErrorOf(connection);
    const std::string& text = why;
    const bool people = needs_people;
    Tell(closure, [&](const Events& events) { events.closed(text, people); });
  }
  static void OnError(natsConnection* connection, natsSubscription*, natsStatus status,
                      void* closure) {
    auto [why, needs_people] = ErrorOf(connection);
    if (why.empty()) why = natsStatus_GetText(status);
    needs_people = needs_people || NeedsPeople(status, why);
    Tell(closure, [&](const Events& events) { events.trouble(why, needs_people); });
  }
  static void OnAnswer(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    if (const std::shared_ptr<Impl> impl = Find(closure)) impl->TakeMessage(message);
    natsMsg_Destroy(message);
  }

  static std::pair<std::string, bool> ErrorOf(natsConnection* connection) {
    const char* text = nullptr;
    const natsStatus status = natsConnection_GetLastError(connection, &text);
    if (status == NATS_OK) return {"", false};
    std::string why =
        Printable(text == nullptr || *text == '\0' ? natsStatus_GetText(status) : text);
    return {why, NeedsPeople(status, why)};
  }

  natsConnection* handle() const { return connection_; }
  absl::Status TakeAnswers(TakeAnswer take);
  absl::Status Publish(const std::string& subject, const std::string& message_id, uint64_t token,
                       std::span<const uint8_t> bytes) {
    return Send(subject, "Nats-Msg-Id", message_id, token, bytes);
  }
  absl::Status Probe(const std::string& subject, uint64_t token) {
    // No stream is named so: a name has no spaces.
    return Send(subject, "Nats-Expected-Stream", "none at all", token, {});
  }

 private:
  struct Living {
    std::mutex mutex;
    std::map<uintptr_t, std::weak_ptr<Impl>> impls;
    uintptr_t last = 0;
  };
  static Living& All() {
    static auto* living = new Living();  // threads of libnats may outlive static objects
    return *living;
  }
  static std::shared_ptr<Impl> Find(void* closure) {
    Living& living = All();
    const std::lock_guard lock(living.mutex);
    const auto found = living.impls.find(reinterpret_cast<uintptr_t>(closure));
    return found == living.impls.end() ? nullptr : found->second.lock();
  }
  void* closure() const { return std::bit_cast<void*>(number_); }

  // Not after Close.
  static void Tell(void* closure, const std::function<void(const Events&)>& tell) {
    const std::shared_ptr<Impl> impl = Find(closure);
    if (impl == nullptr) return;
    const std::lock_guard lock(impl->mutex_);
    if (!impl->closed_) tell(impl->events_);
  }
  void TakeMessage(natsMsg* message);
  absl::Status Send(const std::string& subject, const char* header, const std::string& value,
                    uint64_t token, std::span<const uint8_t> bytes);

  const Events events_;
  uintptr_t number_ = 0;
  natsOptions* options_ = nullptr;
  natsConnection* connection_ = nullptr;
  natsSubscription* answers_ = nullptr;
  std::string inbox_prefix_;
  std::string inbox_;
  TakeAnswer take_;
  std::mutex mutex_;
  bool closed_ = false;
};

absl::Status NatsConnection::Impl::Configure(const NatsOptions& options) {
  if (absl::Status status = CheckNatsOptions(options); !status.ok()) return status;
  inbox_prefix_ = options.inbox_prefix;
  natsStatus status = natsOptions_Create(&options_);
  const auto then = [&status](natsStatus next) {
    if (status == NATS_OK) status = next;
  };
  std::vector<const char*> urls;
  urls.reserve(options.urls.size());
  for (const std::string& url : options.urls) urls.push_back(url.c_str());
  then(natsOptions_SetServers(options_, urls.data(), static_cast<int>(urls.size())));
  then(natsOptions_SetName(options_, options.name.c_str()));
  then(natsOptions_SetTimeout(options_, kConnectTimeout_ms));
  then(natsOptions_SetWriteDeadline(options_, kWriteDeadline_ms));
  then(natsOptions_SetAllowReconnect(options_, true));
  then(natsOptions_SetMaxReconnect(options_, -1));
  then(natsOptions_SetReconnectWait(options_, kReconnectWait_ms));
  then(natsOptions_SetReconnectJitter(options_, kReconnectJitter_ms, kReconnectJitter_ms));
  then(natsOptions_SetPingInterval(options_, kPingPeriod_ms));
  then(natsOptions_SetMaxPingsOut(options_, kMostPingsOut));
  then(natsOptions_SetReconnectedCB(options_, OnConnected, closure()));
  then(natsOptions_SetDisconnectedCB(options_, OnDisconnected, closure()));
  then(natsOptions_SetClosedCB(options_, OnClosed, closure()));
  then(natsOptions_SetErrorHandler(options_, OnError, closure()));
  if (options.tls) then(natsOptions_SetSecure(options_, true));
  if (!options.authorities.empty()) {
    then(natsOptions_LoadCATrustedCertificates(options_, options.authorities.c_str()));
  }
  if (!options.certificate.empty()) {
    then(natsOptions_LoadCertificatesChain(options_, options.certificate.c_str(),
                                           options.key.c_str()));
  }
  if (!options.credentials.empty()) {
    then(natsOptions_SetUserCredentialsFromFiles(options_, options.credentials.c_str(), nullptr));
  }
  if (!options.nkey.empty()) {
    const auto public_key = FirstLineOf(options.nkey, "U");
    if (!public_key.ok()) return public_key.status();  // it was there a moment ago
    then(natsOptions_SetNKeyFromSeed(options_, public_key->c_str(), options.nkey.c_str()));
  }
  if (!options.user.empty()) {
    const auto password = FirstLineOf(options.password_file, "");
    if (!password.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--nats-password-file: ", password.status().message(), " is empty"));
    }
    then(natsOptions_SetUserInfo(options_, options.user.c_str(), password->c_str()));
  }
  if (status == NATS_OK) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the options of NATS: ", natsStatus_GetText(status)));
}

absl::Status NatsConnection::Impl::Connect(const NatsOptions& options) {
  const natsStatus status = natsConnection_Connect(&connection_, options_);
  if (status != NATS_OK) {
    std::string why = status == NATS_NO_SERVER ? "no server answers" : NatsWords(status);
    if (NeedsPeople(status, why)) return absl::PermissionDeniedError(why);
    const std::string unresolved = WhyUnresolved(options.urls);
    return absl::UnavailableError(unresolved.empty() ? why : unresolved);
  }
  OnConnected(connection_, closure());
  return absl::OkStatus();
}

void NatsConnection::Impl::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  natsSubscription_Destroy(answers_);
  natsConnection_Close(connection_);
  natsConnection_Destroy(connection_);
  natsOptions_Destroy(options_);
}

absl::Status NatsConnection::Impl::TakeAnswers(TakeAnswer take) {
  take_ = std::move(take);
  natsInbox* inbox = nullptr;
  if (absl::Status status = ToStatus(natsInbox_Create(&inbox), "an inbox"); !status.ok()) {
    return status;
  }
  constexpr std::string_view kPrefix = "_INBOX.";
  inbox_ =
      absl::StrCat(inbox_prefix_, ".", ToAbsl(std::string_view(inbox).substr(kPrefix.size())), ".");
  natsInbox_Destroy(inbox);
  return ToStatus(
      natsConnection_Subscribe(&answers_, connection_, (inbox_ + "*").c_str(), OnAnswer, closure()),
      "subscribing to answers");
}

void NatsConnection::Impl::TakeMessage(natsMsg* message) {
  const std::string_view subject(natsMsg_GetSubject(message));
  if (!subject.starts_with(inbox_)) return;
  const std::string_view digits = subject.substr(inbox_.size());
  uint64_t token = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), token);
  if (parsed.ec != std::errc()) return;
  const std::string_view answer(natsMsg_GetData(message),
                                static_cast<size_t>(natsMsg_GetDataLength(message)));
  const std::lock_guard lock(mutex_);
  if (!closed_) take_(token, answer, natsMsg_IsNoResponders(message));
}

absl::Status NatsConnection::Impl::Send(const std::string& subject, const char* header,
                                        const std::string& value, uint64_t token,
                                        std::span<const uint8_t> bytes) {
  natsMsg* message = nullptr;
  natsStatus status =
      natsMsg_Create(&message, subject.c_str(), absl::StrCat(inbox_, token).c_str(),
                     reinterpret_cast<const char*>(bytes.data()), static_cast<int>(bytes.size()));
  if (status == NATS_OK) status = natsMsgHeader_Set(message, header, value.c_str());
  if (status == NATS_OK) status = natsConnection_PublishMsg(connection_, message);
  natsMsg_Destroy(message);
  return ToStatus(status, "publishing");
}

absl::StatusOr<std::unique_ptr<NatsConnection>> NatsConnection::Open(const NatsOptions& options,
                                                                     Events events) {
  auto impl = Impl::Make(std::move(events));
  // Owned from here on, so that what was made goes whatever happens.
  std::unique_ptr<NatsConnection> connection(new NatsConnection(impl));
  if (absl::Status status = impl->Configure(options); !status.ok()) return status;
  if (absl::Status status = impl->Connect(options); !status.ok()) return status;
  return connection;
}

NatsConnection::~NatsConnection() { impl_->Close(); }

bool NatsConnection::is_connected() const {
  return impl_->handle() != nullptr &&
         natsConnection_Status(impl_->handle()) == NATS_CONN_STATUS_CONNECTED;
}

bool NatsConnection::is_closed() const {
  return impl_->handle() == nullptr || natsConnection_IsClosed(impl_->handle());
}

std::string NatsConnection::LastDenial() const {
  const auto [why, needs_people] = Impl::ErrorOf(impl_->handle());
  return needs_people ? why : std::string();
}

std::string NatsConnection::LastError() const { return Impl::ErrorOf(impl_->handle()).first; }

uint64_t NatsConnection::max_message_bytes() const {
  return static_cast<uint64_t>(std::max<int64_t>(natsConnection_GetMaxPayload(impl_->handle()), 0));
}

absl::Status NatsConnection::TakeAnswers(TakeAnswer take) {
  return impl_->TakeAnswers(std::move(take));
}

absl::Status NatsConnection::Publish(const std::string& subject, const std::string& message_id,
                                     uint64_t token, std::span<const uint8_t> bytes) {
  return impl_->Publish(subject, message_id, token, bytes);
}

absl::Status NatsConnection::Probe(const std::string& subject, uint64_t token) {
  return impl_->Probe(subject, token);
}

natsConnection* NatsConnection::handle() const { return impl_->handle(); }

}  // namespace vcpulse::stream

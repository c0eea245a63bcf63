#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct __natsConnection;  // of libnats

namespace vcpulse::stream {

// Where the NATS servers are, and who this is to them.
struct NatsOptions {
  std::vector<std::string> urls;        // nats://HOST:PORT, of one cluster
  std::vector<std::string> addresses;   // the same for people, with TLS where it was asked for
  std::string name;                     // of this connection, in the servers' lists
  std::string inbox_prefix = "_INBOX";  // of the subjects on which Publish is answered
  bool tls = false;                     // demand TLS
  std::string authorities;              // PEM file; empty: those of the system
  std::string certificate;              // PEM files of this end; empty: none
  std::string key;
  std::string credentials;    // file of a user's JWT and seed (.creds); empty: none
  std::string nkey;           // file of a seed and its public key, as `nk -gen user -pubout` writes
  std::string user;           // with password_file
  std::string password_file;  // its first line
};

// What libnats says of an error, without the places in its source: `last` (of this thread), or else
// what its status (natsStatus) means.
std::string NatsWords(int status);
std::string NatsWords(int status, std::string_view last);

// The servers, for people.
std::string NamesOf(const NatsOptions& options);

// Whether it names files, which may be read anew.
inline bool HasFiles(const NatsOptions& options) {
  return !options.authorities.empty() || !options.certificate.empty() ||
         !options.credentials.empty() || !options.nkey.empty() || !options.password_file.empty();
}

// InvalidArgument in one line where a file cannot be read or the options contradict each other.
absl::Status CheckNatsOptions(const NatsOptions& options);

// A connection that, once it stood, comes back by itself, for ever, to any server of the cluster.
// Events come from libnats's threads, none after the destructor.
class NatsConnection {
 public:
  struct Events {
    std::function<void()> connected;  // also again
    std::function<void()> disconnected;
    // The server refused something, or speaks of this connection: words for people.
    // `needs_people`: it will go on so until somebody changes something.
    std::function<void(std::string why, bool needs_people)> trouble;
    // It does not try again: make another one, later.
    std::function<void(std::string why, bool needs_people)> closed;
  };

  // Connects: waits for each server for 2 s at most. Errors: of CheckNatsOptions; PermissionDenied
  // where it will not be let in until somebody changes something, else Unavailable.
  static absl::StatusOr<std::unique_ptr<NatsConnection>> Open(const NatsOptions& options,
                                                              Events events);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  bool is_connected() const;
  // It does not come back: make another one.
  bool is_closed() const;
  // Why it is not any more, in words; empty where nothing is known.
  std::string LastError() const;
  // The server's words where it has refused something that this user may not do; else empty.
  std::string LastDenial() const;
  // The largest message that the server takes, with its headers; 0 before it is connected.
  uint64_t max_message_bytes() const;

  // An answer to a message. `no_responders`: nobody takes messages of that subject.
  using TakeAnswer =
      std::function<void(uint64_t token, std::string_view answer, bool no_responders)>;
  // From now on answers to Publish come to `take`, on a thread of libnats.
  absl::Status TakeAnswers(TakeAnswer take);
  // Asks under `token`, with a message of this subject that no stream keeps: a stream that takes
  // the subject answers with an error whose code is kProbeRefused. TakeAnswers came before.
  static constexpr uint64_t kProbeRefused = 10'060;
  absl::Status Probe(const std::string& subject, uint64_t token);
  // Hands a message to libnats, to be answered under `token`. TakeAnswers came before.
  absl::Status Publish(const std::string& subject, const std::string& message_id, uint64_t token,
                       std::span<const uint8_t> bytes);

  // For the other classes of this folder.
  __natsConnection* handle() const;

  class Impl;

 private:
  explicit NatsConnection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl> impl_;
};

}  // namespace vcpulse::stream

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kvm/discovery/qmp_protocol.h"

namespace vcpulse::kvm {

// Where a QMP server listens.
struct QmpAddress {
  std::string path;  // of a unix socket; empty for tcp
  std::string host;  // of tcp, IPv6 without brackets
  std::string port;

  bool operator==(const QmpAddress&) const = default;
};

// `unix:PATH`, a bare path (with a '/' in it), or `tcp:HOST:PORT` (IPv6 in brackets). Errors:
// InvalidArgument, with the forms that are known.
absl::StatusOr<QmpAddress> ParseQmpAddress(const std::string& text);

// What the server said and who it is.
struct QmpReply {
  QmpAnswers answers;
  std::optional<pid_t> server_pid;  // who listens on a unix socket, in our PID namespace
};

// Connects, asks, closes: QMP serves one client at a time, so the connection is held only briefly.
// The whole takes `timeout` at most (a tcp host name that must be looked up excepted). Errors name
// the address: InvalidArgument, Unavailable (no socket, refused, no greeting or no answer in time,
// closed), DataLoss (not QMP), FailedPrecondition (a QEMU too old). Blocks; any thread.
absl::StatusOr<QmpReply> QueryQmp(const std::string& address, absl::Duration timeout,
                                  QmpQuestions questions = QmpQuestions::kIdentity,
                                  const QmpCodePlaces& code = {});

}  // namespace vcpulse::kvm

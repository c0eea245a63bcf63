#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace vcpulse::stream {

// What JetStream answers to a message that was published: {"stream":"S","seq":7,"duplicate":true}
// or {"error":{"code":503,"err_code":10077,"description":"..."}} (ADR-1 of NATS).
struct BrokerAck {
  uint64_t sequence = 0;   // in the JetStream stream
  bool was_known = false;  // it had a message of this id, which stays the only one
};

// Whether it is the error of such a code.
bool IsBrokerError(std::string_view text, uint64_t code);

// Errors: DataLoss for what is neither; FailedPrecondition with the broker's words where it takes
// no such message until somebody changes its limits; Unavailable with its words otherwise.
absl::StatusOr<BrokerAck> ParseBrokerAck(std::string_view text);

}  // namespace vcpulse::stream

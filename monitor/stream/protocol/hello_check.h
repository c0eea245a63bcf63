#pragma once

#include "absl/status/status.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// Whether a collector of this release can answer `hello`. Errors, in words for the peer's owner:
// Unimplemented where no version is common, DataLoss for what no agent or follower says.
absl::Status CheckHello(const v1::Hello& hello);

// Whether an agent can go on with the answer. `last_made` is the last sequence of the stream that
// it knows of, `may_be_behind` whether there may have been later ones. Errors as above, and
// AlreadyExists where the collector has more of the stream than was ever made.
absl::Status CheckWelcome(const v1::Welcome& welcome, uint64_t last_made, bool may_be_behind);

}  // namespace vcpulse::stream

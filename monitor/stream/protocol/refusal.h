#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "vcpulse/v1/stream.pb.h"

namespace vcpulse::stream {

// The code under which a peer is told of `status`: DataLoss is what cannot come here, Unimplemented
// another version, OutOfRange a wrong sequence, DeadlineExceeded slowness, PermissionDenied,
// AlreadyExists (the agent id), Unavailable (too much to do); all else is the storage's.
v1::Error::Code CodeFor(const absl::Status& status);

// Appends an Error frame.
void AppendError(v1::Error::Code code, const std::string& reason, std::vector<uint8_t>& out);

// What a peer said when it closed the connection, for people: one line.
std::string WordsOf(const v1::Error& error);

// Whether trying again is of no use until somebody changes something: who may connect, the agent
// id, the release.
bool NeedsPeople(v1::Error::Code code);

}  // namespace vcpulse::stream

#pragma once

// Of the .cc files of this module. Includes Asio.

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "absl/status/statusor.h"
#include "monitor/stream/net/channel.h"
#include "monitor/stream/net/credentials.h"

namespace vcpulse::stream {

// TLS 1.3 alone, certificates of both sides, from the files as they are now. Errors: as
// CheckCredentials.
absl::StatusOr<std::shared_ptr<TlsContext>> NewTlsContext(const CredentialFiles& files,
                                                          TlsRole role);

}  // namespace vcpulse::stream

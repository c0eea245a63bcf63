#pragma once

#include <sys/un.h>

#include <string>

#include "absl/status/statusor.h"

namespace vcpulse::control {

// The address of a control socket. Errors: InvalidArgument for a path that is empty, holds a NUL or
// is longer than the 107 bytes that a unix socket may have.
absl::StatusOr<sockaddr_un> AddressOf(const std::string& path);

}  // namespace vcpulse::control

#include "monitor/control/socket_path.h"

#include <sys/socket.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::control {

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  if (path.empty()) return absl::InvalidArgumentError("the path of a control socket is empty");
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("control socket ", QuotedPath(path), ": a path has no NUL"));
  }
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("control socket ", QuotedPath(path), ": the path has ", path.size(),
                     " bytes, more than the ", sizeof(address.sun_path) - 1,
                     " that a unix socket may have (a shorter symbolic link to its folder helps)"));
  }
  address.sun_family = AF_UNIX;
  std::ranges::copy(path, address.sun_path);
  return address;
}

}  // namespace vcpulse::control

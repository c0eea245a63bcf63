#include "tools/vcpulse/service.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "kvm/base/fd.h"

namespace vcpulse::tools {

void NotifyService(const std::string& state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  const std::string_view path = name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_abstract = path.starts_with('@');
  // vsock: and other kinds are for virtual machines.
  if ((!is_abstract && !path.starts_with('/')) || path.size() >= sizeof address.sun_path) return;
  std::ranges::copy(path, address.sun_path);
  if (is_abstract) address.sun_path[0] = '\0';
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return;
  // An abstract name ends with its length, any other with a zero byte.
  const size_t length =
      offsetof(sockaddr_un, sun_path) + path.size() + static_cast<size_t>(!is_abstract);
  sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
         reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

rlimit RaiseDescriptorLimit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit limit = before;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace vcpulse::tools

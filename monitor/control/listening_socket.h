#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "kvm/base/fd.h"

namespace vcpulse::control {

// A unix stream socket that listens under a path of its own, which goes with it. Move-only, one
// thread.
class ListeningSocket {
 public:
  // Who may connect: `kOwner` has mode 0600, `kEveryone` 0666. The file has it from its first
  // instant, as bind(2) takes it from the socket itself: changed by its path later, another file
  // that somebody put there could be meant. A
  // socket that nobody listens on, left over by a process that was killed, is replaced. Errors:
  // InvalidArgument for a path that cannot be, AlreadyExists where somebody listens there or
  // something else lies there, else what the system said; one line that names the path.
  enum class Access { kOwner, kEveryone };
  static absl::StatusOr<ListeningSocket> Open(const std::string& path,
                                              Access access = Access::kOwner);

  ListeningSocket(ListeningSocket&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        device_(other.device_),
        inode_(other.inode_),
        fd_(std::move(other.fd_)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  // Removes the path if it still is this socket's.
  ~ListeningSocket();

  // Gives up the descriptor: whoever takes it closes it before the path goes.
  int ReleaseFd() { return fd_.Release(); }

 private:
  ListeningSocket(std::string path, dev_t device, ino_t inode, Fd fd)
      : path_(std::move(path)), device_(device), inode_(inode), fd_(std::move(fd)) {}

  std::string path_;  // empty after a move
  dev_t device_;
  ino_t inode_;
  Fd fd_;
};

// The address of a control socket. Errors: InvalidArgument for a path that is empty, holds a NUL or
// is longer than the 107 bytes that a unix socket may have.
absl::StatusOr<sockaddr_un> AddressOf(const std::string& path);

}  // namespace vcpulse::control

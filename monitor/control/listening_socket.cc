#include "monitor/control/listening_socket.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"

namespace vcpulse::control {
namespace {

constexpr int kBacklog = 16;
constexpr absl::Duration kLockPatience = absl::Seconds(1);

absl::Status At(const std::string& path, absl::StatusCode code, const std::string& what) {
  return absl::Status(code, absl::StrCat("socket ", QuotedPath(path), ": ", what));
}

absl::Status FromErrno(const std::string& path, int error, const char* what) {
  return absl::ErrnoToStatus(error, absl::StrCat("socket ", QuotedPath(path), ": ", what));
}

int Bind(int fd, const sockaddr_un& address) {
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
}

// The same without the umask. Linux keeps it per process unless a thread gives up sharing it, so a
// thread of its own does: no file that another one makes meanwhile is open to everyone.
int BindWithoutUmask(int fd, const sockaddr_un& address) {
  int error = 0;
  std::thread([&] {
    if (unshare(CLONE_FS) != 0) {
      error = errno;
      return;
    }
    umask(0);
    error = Bind(fd, address);
  }).join();
  return error;
}

// Holds the folder of the path while a left-over socket is judged and replaced: two recordings that
// begin at once must not each take the other's new socket, which does not listen yet, for a
// left-over. None where the folder cannot be opened or somebody else holds it for long.
Fd LockFolder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  Fd folder(open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Deadline give_up(kLockPatience);
  while (folder.valid() && flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && !give_up.over()) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  return folder;
}

// OK where a socket lies there that nobody listens on.
absl::Status CheckLeftOver(const std::string& path, const sockaddr_un& address) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return FromErrno(path, errno, "cannot be looked at");
  if (!S_ISSOCK(info.st_mode)) {
    return At(path, absl::StatusCode::kAlreadyExists,
              "something else lies there; name another path or remove it");
  }
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return FromErrno(path, errno, "no socket can be made");
  const int result =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = result == 0 ? 0 : errno;
  if (error == ECONNREFUSED) return absl::OkStatus();
  if (error == 0 || error == EAGAIN || error == EPROTOTYPE) {
    return At(path, absl::StatusCode::kAlreadyExists,
              "somebody listens there already; name another path, or end that one");
  }
  return FromErrno(path, error, "a socket lies there, and cannot be asked whether it is in use");
}

}  // namespace

absl::StatusOr<ListeningSocket> ListeningSocket::Open(const std::string& path, Access access) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return FromErrno(path, errno, "no socket can be made");
  const bool is_open = access == Access::kEveryone;
  if (fchmod(fd.get(), is_open ? 0666 : 0600) != 0) {
    return FromErrno(path, errno, "its mode cannot be set");
  }
  const auto bind_it = is_open ? BindWithoutUmask : Bind;

  const Fd lock = LockFolder(path);
  int error = bind_it(fd.get(), *address);
  if (error == EADDRINUSE) {
    if (absl::Status status = CheckLeftOver(path, *address); !status.ok()) return status;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return FromErrno(path, errno, "a left-over socket cannot be removed");
    }
    error = bind_it(fd.get(), *address);
  }
  if (error != 0) return FromErrno(path, error, "cannot be made");
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return FromErrno(path, errno, "cannot be looked at");
  ListeningSocket made(path, info.st_dev, info.st_ino, std::move(fd));
  if (listen(made.fd_.get(), kBacklog) != 0) return FromErrno(path, errno, "cannot listen");
  return made;
}

ListeningSocket::~ListeningSocket() {
  struct stat info{};
  if (path_.empty() || lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) unlink(path_.c_str());
}

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

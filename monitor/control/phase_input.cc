#include "monitor/control/phase_input.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "monitor/control/request.h"

namespace vcpulse::control {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kMostReasons = 64;  // that are remembered as said
constexpr int kMostWaitingReads = 16;

}  // namespace

class PhaseInput::Impl : public std::enable_shared_from_this<Impl> {
 public:
  // `ready` becomes readable when `fd` does; none where `fd` always is.
  Impl(asio::io_context& context, int fd, Fd ready, Clock now_ns, Callbacks callbacks)
      : context_(context),
        ready_(context),
        fd_(fd),
        now_ns_(now_ns),
        callbacks_(std::move(callbacks)) {
    if (ready.valid()) ready_.assign(ready.Release());
  }

  void Wait() {
    if (!ready_.is_open()) {
      return asio::post(context_, [weak = weak_from_this()] {
        if (const std::shared_ptr<Impl> self = weak.lock()) self->Read();
      });
    }
    ready_.async_wait(asio::posix::descriptor_base::wait_read,
                      [weak = weak_from_this()](const error_code& error) {
                        const std::shared_ptr<Impl> self = weak.lock();
                        if (self != nullptr && !error) self->Read();
                      });
  }

  void TakeWaiting() {
    for (int i = 0; i < kMostWaitingReads; ++i) {
      pollfd wanted{fd_, POLLIN, 0};
      if (ended_ || poll(&wanted, 1, 0) <= 0 || (wanted.revents & (POLLIN | POLLHUP)) == 0) return;
      ReadOnce();
    }
  }

 private:
  void Read() {
    if (ReadOnce()) Wait();
  }

  // False at the end.
  bool ReadOnce() {
    std::array<char, 4096> buffer{};
    const ssize_t size = read(fd_, buffer.data(), buffer.size());
    const int error = errno;
    if (size < 0 && (error == EINTR || error == EAGAIN)) return true;
    const int64_t now_ns = now_ns_();
    if (size > 0) lines_.Receive({buffer.data(), static_cast<size_t>(size)});
    while (const auto line = lines_.Next()) Take(*line, now_ns);
    if (size > 0) return true;
    ended_ = true;
    if (const auto line = lines_.Rest()) Take(*line, now_ns);
    if (size < 0) {
      callbacks_.say(absl::StrCat("standard input cannot be read: ", std::strerror(error),
                                  "; no more markers come from it"));
    }
    return false;
  }

  void Take(const LineSplitter::Line& line, int64_t now_ns) {
    if (line.too_long) {
      return Say(absl::StrCat("column ", kLongestLine_bytes + 1, ": a line has at most ",
                              kLongestLine_bytes, " bytes"));
    }
    const absl::StatusOr<std::string> name = CheckMarkerName(line.text);
    if (!name.ok()) return Say(std::string(name.status().message()));
    callbacks_.mark(*name, now_ns);
  }

  void Say(const std::string& why) {
    if (said_.size() >= kMostReasons || !said_.insert(why).second) return;
    callbacks_.say(absl::StrCat("a line of standard input is not a marker and is skipped: ", why));
  }

  asio::io_context& context_;
  // A descriptor of our own that stands for `fd_`: Asio makes what it waits on non-blocking.
  asio::posix::stream_descriptor ready_;
  int fd_;
  Clock now_ns_;
  Callbacks callbacks_;
  LineSplitter lines_;
  bool ended_ = false;
  std::set<std::string> said_;
};

PhaseInput::PhaseInput(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

PhaseInput::~PhaseInput() = default;

void PhaseInput::TakeWaiting() { impl_->TakeWaiting(); }

absl::StatusOr<std::unique_ptr<PhaseInput>> PhaseInput::Open(asio::io_context& context, int fd,
                                                             Clock now_ns, Callbacks callbacks) {
  Fd ready(epoll_create1(EPOLL_CLOEXEC));
  if (!ready.valid()) return absl::ErrnoToStatus(errno, "epoll_create1");
  epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
  if (epoll_ctl(ready.get(), EPOLL_CTL_ADD, fd, &wanted) != 0) {
    // A regular file cannot be waited for: it is always readable.
    if (errno != EPERM) return absl::ErrnoToStatus(errno, "standard input cannot be read");
    ready = Fd();
  }
  auto impl = std::make_shared<Impl>(context, fd, std::move(ready), now_ns, std::move(callbacks));
  impl->Wait();
  return std::unique_ptr<PhaseInput>(new PhaseInput(std::move(impl)));
}

}  // namespace vcpulse::control

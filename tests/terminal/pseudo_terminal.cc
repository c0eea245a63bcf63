#include "tests/terminal/pseudo_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::kvm_tests {

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& words, Begins begins) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int fd = -1;
  int of_program = -1;
  const winsize size{.ws_row = 120, .ws_col = 400, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&fd, &of_program, nullptr, nullptr, &size) != 0) return;
  const Fd program_end(of_program);
  fd_ = Fd(fd);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (begins == Begins::kStopped && tcflow(of_program, TCOOFF) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    login_tty(of_program);
    setenv("TERM", "xterm", 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
}

PseudoTerminal::~PseudoTerminal() {
  if (pid_ <= 0 || status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void PseudoTerminal::Terminate() const { kill(pid_, SIGTERM); }

bool PseudoTerminal::AwaitByte() const {
  pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&readable, 1, static_cast<int>(kLong / absl::Milliseconds(1))) == 1;
}

int PseudoTerminal::Waiting() const {
  int bytes = 0;
  return ioctl(fd_.get(), FIONREAD, &bytes) == 0 ? bytes : 0;
}

const std::string& PseudoTerminal::Read() {
  while (Waiting() > 0) {
    std::array<char, 4096> some{};
    const ssize_t size = read(fd_.get(), some.data(), some.size());
    if (size <= 0) break;
    text_.append(some.data(), static_cast<size_t>(size));
  }
  return text_;
}

bool PseudoTerminal::EndsThoughStopped() {
  constexpr absl::Duration kUntilItWaits = absl::Seconds(2);
  absl::SleepFor(kUntilItWaits);
  return HasStarted() && !Status() && Eventually([this] {
           Terminate();
           return Status().has_value();
         });
}

std::optional<int> PseudoTerminal::Status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

}  // namespace vcpulse::kvm_tests

#include "monitor/live/child_command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"

namespace vcpulse::live {
namespace {

// After fork: becomes the command, or sends errno through `report_fd`.
[[noreturn]] void BecomeCommand(const std::vector<char*>& argv, const rlimit& descriptors,
                                int report_fd) {
  setrlimit(RLIMIT_NOFILE, &descriptors);
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(argv.front(), argv.data());
  const int error = errno;
  static_cast<void>(!write(report_fd, &error, sizeof(error)));
  _exit(127);
}

}  // namespace

absl::StatusOr<ChildCommand> ChildCommand::Start(const std::vector<std::string>& arguments,
                                                 const rlimit& descriptors) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // execvp does not write to it
  }
  argv.push_back(nullptr);

  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::InternalError("no pipe can be made");
  Fd report(ends[0]);
  Fd child_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return absl::InternalError("no process can be started");
  if (pid == 0) BecomeCommand(argv, descriptors, child_end.get());
  child_end = Fd();

  int error = 0;
  ssize_t got = 0;
  do {
    got = read(report.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot run ", arguments.front()));
  }
  return ChildCommand(pid);
}

std::optional<int> ChildCommand::Poll() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    if (pid != pid_) continue;
    exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return exit_code_;
}

void ChildCommand::Signal(int signal) const {
  if (!exit_code_) kill(pid_, signal);
}

}  // namespace vcpulse::live

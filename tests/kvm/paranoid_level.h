#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace vcpulse::kvm_tests {

// kernel.perf_event_paranoid as an ordinary user sees it. Put back by a process of its own when the
// object goes or the test dies, by whatever signal.
class ParanoidLevel {
 public:
  explicit ParanoidLevel(int level) {
    const int before = Now();
    if (before == kUnreadable || ::pipe2(pipe_, O_CLOEXEC) != 0) return;
    guardian_ = ::fork();
    if (guardian_ == 0) {
      ::close(pipe_[1]);
      char byte = 0;
      while (::read(pipe_[0], &byte, 1) > 0) {
      }
      Write(before);
      ::_exit(0);
    }
    ::close(pipe_[0]);
    Write(level);
    set_ = Now() == level;
  }
  ParanoidLevel(const ParanoidLevel&) = delete;
  ParanoidLevel& operator=(const ParanoidLevel&) = delete;
  ~ParanoidLevel() {
    if (guardian_ <= 0) return;
    ::close(pipe_[1]);
    ::waitpid(guardian_, nullptr, 0);
  }

  // Whether it has the level that was asked for.
  bool set() const { return set_; }

 private:
  static constexpr char kPath[] = "/proc/sys/kernel/perf_event_paranoid";
  static constexpr int kUnreadable = -100;

  static int Now() {
    int level = kUnreadable;
    std::ifstream(kPath) >> level;
    return level;
  }
  static void Write(int level) { std::ofstream(kPath) << level; }

  int pipe_[2] = {-1, -1};
  pid_t guardian_ = -1;
  bool set_ = false;
};

}  // namespace vcpulse::kvm_tests

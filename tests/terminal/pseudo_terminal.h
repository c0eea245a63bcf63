#pragma once

// A program on a terminal that is read only when a test says so, unlike a tmux.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "kvm/base/fd.h"

namespace vcpulse::kvm_tests {

class PseudoTerminal {
 public:
  enum class Begins { kRunning, kStopped };  // as by Ctrl-S

  // Of 400 x 120 characters, an xterm. The program is killed with the object.
  explicit PseudoTerminal(const std::vector<std::string>& words, Begins begins = Begins::kRunning);
  ~PseudoTerminal();
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  bool HasStarted() const { return pid_ > 0; }
  void Terminate() const;
  // Returns as soon as there is something to read; false where nothing comes for kLong.
  bool AwaitByte() const;
  // Bytes that wait to be read.
  int Waiting() const;
  // All that was read so far.
  const std::string& Read();
  // Whether signals end the program once it has found its terminal stopped. Each ends one wait for
  // the terminal: the error cannot be shown either.
  bool EndsThoughStopped();
  // As waitpid(2) gives it, once the program has ended.
  std::optional<int> Status();

 private:
  pid_t pid_ = -1;
  Fd fd_;
  std::string text_;
  std::optional<int> status_;
};

}  // namespace vcpulse::kvm_tests

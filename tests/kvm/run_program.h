#pragma once

// Runs programs as a person would, for tests of the vcpulse command.

#include <sys/types.h>

#include <string>
#include <vector>

namespace vcpulse::kvm_tests {

struct Finished {
  int exit_code = -1;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
};

// A program that runs, with its output in files of a temporary folder. Killed with its object.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments);
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // What it wrote so far; the exit code says nothing.
  Finished SoFar() const;
  // Waits for its end.
  Finished Wait();

 private:
  pid_t pid_ = -1;
  std::string folder_;
};

// Starts it and waits.
Finished RunProgram(const std::vector<std::string>& arguments);

// The vcpulse under test with these arguments.
std::vector<std::string> Vcpulse(std::vector<std::string> arguments);

}  // namespace vcpulse::kvm_tests

#pragma once

// Runs programs as a person would, for tests of the vcpulse command.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

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

// All bytes of a file; none where it cannot be read.
std::string Contents(const std::filesystem::path& path);

// Starts it and waits.
Finished RunProgram(const std::vector<std::string>& arguments);

// The vcpulse under test with these arguments.
std::vector<std::string> Vcpulse(std::vector<std::string> arguments);

// Waiting for what must come, with a bound that no machine is too slow for.

inline constexpr absl::Duration kLong = absl::Seconds(30);

// Whether the condition became true within kLong; asked every 50 ms.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + kLong;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return true;
}

}  // namespace vcpulse::kvm_tests

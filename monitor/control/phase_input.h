#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kvm/base/clock.h"

namespace boost::asio {
class io_context;
}

namespace vcpulse::control {

// Reads markers from a descriptor (standard input), one per line, until it ends. The descriptor
// stays in blocking mode, as others may share it (a terminal with its shell), and is not closed.
// All of it on the thread that runs the io_context.
class PhaseInput {
 public:
  struct Callbacks {
    // `received_mono_ns`: CLOCK_MONOTONIC when the line was read.
    std::function<void(const std::string& name, int64_t received_mono_ns)> mark;
    // Why a line is no marker, in one line, said once for each different reason; or why the
    // descriptor cannot be read any more, which ends the reading.
    std::function<void(const std::string& line)> say;
  };

  // `context` must outlive it. Errors: what the system said.
  static absl::StatusOr<std::unique_ptr<PhaseInput>> Open(boost::asio::io_context& context, int fd,
                                                          Clock now_ns, Callbacks callbacks);

  PhaseInput(const PhaseInput&) = delete;
  PhaseInput& operator=(const PhaseInput&) = delete;
  ~PhaseInput();

  // Takes what can be read at once, 64 KiB of it at most: for the end of the recording.
  void TakeWaiting();

 private:
  class Impl;
  explicit PhaseInput(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace vcpulse::control

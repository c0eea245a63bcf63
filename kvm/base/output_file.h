#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"

namespace vcpulse {

// The file of a recording or of a command that writes one. It is begun without a name (under a
// temporary one where the file system knows no such files); when it takes its name, an older file
// of that name is kept as NAME.old. What is
// not a regular file (a device, a pipe, `-` for standard output) is written to directly. One
// thread.
class OutputFile {
 public:
  // When it takes its name.
  enum class Appears {
    kWithFirstAppend,  // a recording, which may be killed: its name stands for whole chunks
    kWhenFinished,     // a file that is of use as a whole only
  };

  // Checks that `path` can be written to. Errors: what the system said, naming the path;
  // FailedPrecondition where another OutputFile, of this process or another, is writing it.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(
      const std::string& path, Appears appears = Appears::kWithFirstAppend);

  // Removes what did not take its name.
  ~OutputFile();

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Adds all of `bytes` or, in a regular file, nothing. Errors: what write(2) or rename(2) said;
  // Cancelled where the reader of a pipe went away.
  absl::Status Append(std::span<const uint8_t> bytes);

  // All was appended that belongs to it: it takes its name unless it has it. Errors: what rename(2)
  // said; then an older file has its name still.
  absl::Status Finish();

  uint64_t bytes() const { return bytes_; }
  // As given, "standard output" for `-`.
  const std::string& name() const { return name_; }

 private:
  OutputFile(std::string path, bool ours, std::string temporary, Appears appears, Fd fd);

  absl::Status TakeItsPlace();

  std::string name_;
  std::string path_;
  std::string temporary_;  // empty once in place, or while it has no name at all
  bool ours_;              // a regular file that we began
  bool has_its_name_;
  Appears appears_;
  Fd fd_;
  uint64_t bytes_ = 0;
};

// Appends to an OutputFile on a thread of its own ("vcpulse-output", which takes no signals), so
// that an output that takes no data (a pipe that nobody reads, a file system that hangs) keeps its
// caller waiting no longer than the caller wants. What is appended is written in order; nothing is
// written after the first error. One thread calls it.
class OutputThread {
 public:
  // Waiting bytes from which on the caller should add no more until some are written...
  static constexpr size_t kBacklogBytes = 8u << 20;
  // ...and beyond which they are refused.
  static constexpr size_t kMostBytes = 8 * kBacklogBytes;

  explicit OutputThread(std::unique_ptr<OutputFile> file);

  // Without Finish what still waits is not written. Waits at most 2 s for the thread.
  ~OutputThread();

  OutputThread(const OutputThread&) = delete;
  OutputThread& operator=(const OutputThread&) = delete;

  // Takes a copy of the bytes, and waits for nothing. Errors: the first one of
  // OutputFile::Append so far; ResourceExhausted where kMostBytes wait.
  absl::Status Append(std::span<const uint8_t> bytes);

  // Whether the output falls behind: kBacklogBytes wait to be written.
  bool backlogged() const;

  // Waits until all so far is written, but no longer than `deadline`. Errors: of
  // OutputFile::Append.
  absl::Status Settle(const Deadline& deadline) const;

  // Writes what waits, until `deadline`, and closes the file. An output that hangs is then left to
  // its thread, which ends when write(2) returns or the process does. Errors: of
  // OutputFile::Append; DeadlineExceeded with how much was not written. Called once, last.
  absl::Status Finish(const Deadline& deadline);

  // Of the file.
  const std::string& name() const { return name_; }

 private:
  struct State;

  static void Run(State& state);

  std::string name_;
  std::shared_ptr<State> state_;  // the thread's too, which may outlive this
  std::thread thread_;
};

}  // namespace vcpulse

#pragma once

// What a terminal sees while a command reads its input: how much of it was read, and how long the
// rest will take.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"

namespace vcpulse::tools {

// "reading web.vpt: 43 % of 1.2 GiB, 12 s left", at most `columns` wide. Without `total_bytes`
// (a pipe, a part of a file) it has what was read so far; once all was read, for how long the
// command has been at work. Time left is in proportion to what was read.
std::string ProgressLine(const std::string& what, uint64_t read_bytes,
                         std::optional<uint64_t> total_bytes, absl::Duration elapsed,
                         size_t columns);

// Bytes of all files together, `readings` times; a folder's are those of its *.vpt. Nothing where
// one of them is no regular file, as its end is not known.
std::optional<uint64_t> BytesToRead(const std::vector<std::string>& files, uint64_t readings = 1);

// Where the command writes its result while it reads.
enum class Writes { kFile, kStdout };

// Shows that line on stderr from the first second on, five times a second, where stderr is a
// terminal and nothing else may be writing there: not where standard output is a pipe (whose reader
// may own the screen), nor where the result goes to the terminal meanwhile. Else does nothing. What
// was read is what the kernel counts for this process. One at a time.
class ReadProgress {
 public:
  ReadProgress(std::string what, std::optional<uint64_t> total_bytes,
               Writes writes = Writes::kFile);
  ~ReadProgress() { Stop(); }
  ReadProgress(const ReadProgress&) = delete;
  ReadProgress& operator=(const ReadProgress&) = delete;

  // Removes the line for good, so that something else can be printed.
  void Stop();

 private:
  void ShowOn(const std::stop_token& stopped) const;

  const std::string what_;
  const std::optional<uint64_t> total_bytes_;
  std::jthread shows_;  // not joinable: no terminal
};

// Says on stderr, where that is a terminal, that `output` was written and how large it is. Nothing
// for standard output.
void SayWritten(const std::string& output);

}  // namespace vcpulse::tools

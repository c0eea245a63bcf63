#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/fd.h"

namespace vcpulse::recorder {

// The file of a recording. A name never stands for less than one whole chunk: the first one is
// written under a temporary name beside it, then an older file of that name is kept as NAME.old and
// the new one takes its place. What is not a regular file (a device, a pipe, `-` for standard
// output) is written to directly. One thread.
class OutputFile {
 public:
  // Checks that `path` can be written to. Errors: what the system said, naming the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);

  // Removes the temporary file where nothing was ever appended.
  ~OutputFile();

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Adds all of `bytes` or, in a regular file, nothing. Errors: what write(2) or rename(2) said.
  absl::Status Append(std::span<const uint8_t> bytes);

  uint64_t bytes() const { return bytes_; }
  // As given, "standard output" for `-`.
  const std::string& name() const { return name_; }

 private:
  OutputFile(std::string path, std::string temporary, kvm::Fd fd);

  absl::Status TakeItsPlace();

  std::string name_;
  std::string path_;
  std::string temporary_;  // empty once in place, or where there is none
  bool ours_;              // a regular file that we began
  kvm::Fd fd_;
  uint64_t bytes_ = 0;
};

}  // namespace vcpulse::recorder

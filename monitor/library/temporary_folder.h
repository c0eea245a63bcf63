#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace vcpulse::library {

// A new folder for one recording, removed with all it holds with its object.
class TemporaryFolder {
 public:
  // Below TMPDIR, or /tmp. Errors: of mkdtemp(3), naming the folder.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make();
  ~TemporaryFolder();

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string FileNamed(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace vcpulse::library

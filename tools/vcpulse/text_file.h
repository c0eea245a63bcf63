#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/output_file.h"

namespace vcpulse::tools {

// InvalidArgument where `path` is `-` and standard output is a terminal, as `what` ("a Parquet
// file") is binary.
absl::Status CheckTakesBinary(const std::string& path, std::string_view what);

// Where the text of a command goes: a file that appears when it is finished, or standard output.
class TextFile {
 public:
  // `-` is standard output. Errors: those of OutputFile::Create.
  static absl::StatusOr<TextFile> Open(const std::string& path);

  // Errors: those of WriteToStdout and of OutputFile::Append.
  absl::Status Append(std::string_view text);
  // The file takes its name, also where nothing was written to it.
  absl::Status Finish();

 private:
  TextFile() = default;

  std::unique_ptr<OutputFile> file_;  // null: standard output
};

}  // namespace vcpulse::tools

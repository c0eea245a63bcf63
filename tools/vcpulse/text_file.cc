#include "tools/vcpulse/text_file.h"

#include <unistd.h>

#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "tools/vcpulse/output.h"

namespace vcpulse::tools {

absl::Status CheckTakesBinary(const std::string& path, std::string_view what) {
  if (path != "-" || isatty(STDOUT_FILENO) != 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--output: - is a terminal, and ", ToAbsl(what),
                                                 " is binary: redirect it or name a file"));
}

absl::StatusOr<TextFile> TextFile::Open(const std::string& path) {
  TextFile output;
  if (path == "-") return output;
  auto file = OutputFile::Create(path, OutputFile::Appears::kWhenFinished);
  if (!file.ok()) return file.status();
  output.file_ = *std::move(file);
  return output;
}

absl::Status TextFile::Append(std::string_view text) {
  if (file_ == nullptr) return WriteToStdout(text);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  return file_->Append(std::span(bytes, text.size()));
}

absl::Status TextFile::Finish() { return file_ == nullptr ? absl::OkStatus() : file_->Finish(); }

}  // namespace vcpulse::tools

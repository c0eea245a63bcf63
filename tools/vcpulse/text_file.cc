#include "tools/vcpulse/text_file.h"

#include <cstdint>
#include <span>
#include <utility>

#include "tools/vcpulse/output.h"

namespace vcpulse::tools {

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

#include "tools/vcpulse/timeline_input.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace vcpulse::tools {

std::string NameOf(const std::string& file) { return file == "-" ? "standard input" : file; }

absl::Status ReadFailure(const absl::Status& status, const std::string& file) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat(file, ": no such file (`vcpulse record -o FILE` writes one)"));
}

absl::StatusOr<timeline::ReadReport> ReadInput(const std::string& file,
                                               const timeline::EntrySink& sink) {
  absl::Status taken;
  absl::StatusOr<timeline::ReadReport> read =
      timeline::ReadTimeline(file, [&](const timeline::Entry& entry) {
        taken = sink(entry);
        return taken;
      });
  if (read.ok() || !taken.ok()) return read;
  return ReadFailure(read.status(), file);
}

void Warn(const std::string& file, const std::string& text) {
  if (text.empty()) return;
  std::fprintf(stderr, "vcpulse: warning: %s: %s\n", NameOf(file).c_str(), text.c_str());
}

}  // namespace vcpulse::tools

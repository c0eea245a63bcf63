#include "monitor/reading/repeatable_input.h"

#include <sys/stat.h>

#include <span>

#include "monitor/timeline/byte_source.h"

namespace vcpulse::reading {

absl::StatusOr<RepeatableInput> RepeatableInput::Open(const std::string& path) {
  RepeatableInput input(path);
  struct stat info{};
  const bool can_be_read_again = path != "-" && (stat(path.c_str(), &info) != 0 ||
                                                 S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
  if (can_be_read_again) return input;
  input.in_memory_ = true;
  auto source = timeline::OpenByteSource(path);
  if (!source.ok()) return source.status();
  constexpr size_t kAtOnce = 1u << 20;
  while (true) {
    const size_t before = input.bytes_.size();
    input.bytes_.resize(before + kAtOnce);
    const auto got = (*source)->ReadAt(before, std::span(input.bytes_).subspan(before));
    if (!got.ok()) return got.status();
    input.bytes_.resize(before + *got);
    (*source)->Forget(before + *got);
    if (*got < kAtOnce) return input;
  }
}

absl::StatusOr<timeline::ReadReport> RepeatableInput::Read(const timeline::EntrySink& sink) const {
  return in_memory_ ? timeline::ReadTimelineBytes(bytes_, sink)
                    : timeline::ReadTimeline(path_, sink);
}

}  // namespace vcpulse::reading

// Merging, from arbitrary bytes: the first two bytes, little-endian, are the length of the first
// part, which follows them; the second part is the rest.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kvm/base/fd.h"
#include "monitor/timeline/merge.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::timeline {
namespace {

// A file in memory, and its path.
class Part {
 public:
  explicit Part(std::span<const uint8_t> bytes) : fd_(memfd_create("part", MFD_CLOEXEC)) {
    if (!fd_.valid()) std::abort();
    if (::write(fd_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  Fd fd_;
};

// What was merged is one recording in rising sequence: a reader finds no repetition and, where
// nothing is damaged, the holes that merging found.
void Merge(std::span<const uint8_t> first, std::span<const uint8_t> second) {
  const Part one(first);
  const Part two(second);
  std::vector<uint8_t> merged;
  uint64_t chunks = 0;
  const std::vector<std::string> paths = {one.path(), two.path()};
  const auto report = MergeTimelines(paths, [&](std::span<const uint8_t> bytes) {
    ++chunks;
    merged.insert(merged.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  if (!report.ok()) return;
  if (report->chunks == 0 || report->chunks > chunks) std::abort();
  if (report->first_sequence > report->last_sequence) std::abort();
  if (report->first_holes.size() > report->holes) std::abort();
  const auto read =
      ReadTimelineBytes(merged, [](const Entry& /*entry*/) { return absl::OkStatus(); });
  if (!read.ok()) std::abort();
  for (const Damage& damage : read->damages) {
    if (damage.reason.find("repeats") != std::string::npos) std::abort();
  }
  bool whole = read->damages.empty() && report->first_sequence == 1;
  for (const MergeReport::Part& part : report->parts) whole = whole && part.damages.empty();
  if (whole && read->lost_records != report->lost_records) std::abort();
}

}  // namespace
}  // namespace vcpulse::timeline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::span(data, size).subspan(2);
  const size_t cut = std::min<size_t>(bytes.size(), data[0] | data[1] << 8);
  vcpulse::timeline::Merge(bytes.first(cut), bytes.subspan(cut));
  return 0;
}

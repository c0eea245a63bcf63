#include "monitor/report/read_part.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::report {
namespace {

// The instant of a record of the stream's own; nothing for context (sequence 0), which is repeated.
std::optional<int64_t> OwnInstantOf(const timeline::Entry& entry) {
  return entry.sequence == 0 ? std::nullopt : timeline::InstantOf(entry);
}

// The instant of the first record that has one. Reads no further than that record's chunk.
absl::StatusOr<std::optional<int64_t>> FindStart(const std::string& path) {
  std::optional<int64_t> start;
  const auto read = timeline::ReadTimeline(path, [&start](const timeline::Entry& entry) {
    start = OwnInstantOf(entry);
    return start ? absl::CancelledError("found") : absl::OkStatus();
  });
  if (!read.ok() && !start) return read.status();
  return start;
}

// Passes on what lies in a part of a stream that cannot be sought in, and the records that explain
// it.
class PartFilter {
 public:
  explicit PartFilter(Part part) : part_(part) {}

  bool Passes(const timeline::Entry& entry) {
    const std::optional<int64_t> instant = OwnInstantOf(entry);
    if (!instant) return true;
    if (!start_) start_ = instant;
    if (std::holds_alternative<v1::VcpuSet>(entry.record)) return true;
    const int64_t offset = *instant - *start_;
    return offset >= part_.from_ns.value_or(0) && (!part_.to_ns || offset <= *part_.to_ns);
  }

  std::optional<int64_t> start() const { return start_; }

 private:
  Part part_;
  std::optional<int64_t> start_;
};

}  // namespace

absl::StatusOr<Report> ReadPart(const std::string& path, const Part& part, Summary& summary) {
  const bool is_part = part.from_ns || part.to_ns;
  const bool seeks = path != "-";
  std::optional<int64_t> start;
  timeline::TimeRange range;
  if (is_part && seeks) {
    const auto found = FindStart(path);
    if (!found.ok()) return found.status();
    start = *found;
    if (start && part.from_ns) range.from_mono_ns = *start + *part.from_ns;
    if (start && part.to_ns) range.to_mono_ns = *start + *part.to_ns;
  }
  PartFilter filter(part);
  auto read = timeline::ReadTimeline(
      path,
      [&](const timeline::Entry& entry) {
        if (is_part && !seeks && !filter.Passes(entry)) return absl::OkStatus();
        absl::Status added = summary.Add(entry);
        if (added.ok()) return added;
        return absl::Status(added.code(),
                            absl::StrCat(seeks ? path : "standard input", ": ", added.message()));
      },
      range);
  if (!read.ok()) return read.status();
  if (is_part && !seeks) start = filter.start();
  return Report{.summary = summary,
                .read = *std::move(read),
                .start_mono_ns = start,
                .from_ns = part.from_ns,
                .to_ns = part.to_ns};
}

}  // namespace vcpulse::report

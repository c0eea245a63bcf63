#include "monitor/reading/part.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/timeline/byte_source.h"

namespace vcpulse::reading {
namespace {

constexpr size_t kPhasesNamed = 8;
constexpr int64_t kLongestInterval_ns = int64_t{3600} * 1'000'000'000;
constexpr int64_t kLeastSlack_ns = 2'000'000'000;  // ticks come late, too

// The instant of a record of the stream's own; nothing for context (sequence 0), which is repeated.
std::optional<int64_t> OwnInstantOf(const timeline::Entry& entry) {
  return entry.sequence == 0 ? std::nullopt : timeline::InstantOf(entry);
}

struct Start {
  std::optional<int64_t> mono_ns;  // of the first record that has one
  int64_t interval_ns = 0;         // as the session says
};

// Reads no further than the chunk of the first record that has an instant.
absl::StatusOr<Start> FindStart(const timeline::Input& input) {
  Start start;
  const auto read = timeline::ReadTimeline(input, [&start](const timeline::Entry& entry) {
    if (const auto* session = std::get_if<v1::Session>(&entry.record)) {
      start.interval_ns =
          static_cast<int64_t>(std::min<uint64_t>(session->interval_ns(), kLongestInterval_ns));
    }
    start.mono_ns = OwnInstantOf(entry);
    return start.mono_ns ? absl::CancelledError("found") : absl::OkStatus();
  });
  if (!read.ok() && !start.mono_ns) return read.status();
  return start;
}

// CLOCK_MONOTONIC; without an end up to that of the recording.
struct Span {
  int64_t from_ns = 0;
  int64_t to_ns = std::numeric_limits<int64_t>::max();

  bool IsOpen() const { return to_ns == std::numeric_limits<int64_t>::max(); }
};

// A tick tells of the time since the one before it, and is of the span that has the middle of that:
// so no tick is of two spans that touch, and none is lost between them. Likewise a window that
// was opened for a closer look.
bool LiesIn(const Span& span, const timeline::Entry& entry, int64_t instant_ns) {
  const auto* tick = std::get_if<timeline::TickEntry>(&entry.record);
  if (tick != nullptr) instant_ns = PlaceOf(*tick);
  if (const auto* window = std::get_if<v1::HotAddresses>(&entry.record)) {
    instant_ns = std::midpoint(window->begin_mono_ns(), window->mono_ns());
  } else if (const auto* other = std::get_if<v1::Competitors>(&entry.record)) {
    instant_ns = std::midpoint(other->begin_mono_ns(), other->mono_ns());
  }
  return instant_ns >= span.from_ns && instant_ns < span.to_ns;
}

// Passes on what lies in a part, and the records that explain it. The part begins with the first
// instant that is seen, unless the start is given.
class PartFilter {
 public:
  PartFilter(Part part, std::optional<int64_t> start) : part_(std::move(part)), start_(start) {}

  bool Passes(const timeline::Entry& entry) {
    const std::optional<int64_t> instant = OwnInstantOf(entry);
    if (!instant) return true;
    if (!start_) start_ = instant;
    if (std::holds_alternative<v1::VcpuSet>(entry.record)) return true;
    Span span{.from_ns = *start_ + part_.from_ns.value_or(0)};
    if (part_.to_ns) span.to_ns = *start_ + *part_.to_ns;
    return LiesIn(span, entry, *instant);
  }

  std::optional<int64_t> start() const { return start_; }

 private:
  Part part_;
  std::optional<int64_t> start_;
};

// What one reading tells of the phases.
struct Phases {
  std::vector<Span> spans;  // of the phase asked for
  std::vector<std::string> names;
  std::optional<int64_t> start_ns;
  int64_t end_ns = 0;

  int64_t LengthNs() const {
    int64_t length_ns = 0;
    for (const Span& span : spans) length_ns += std::min(span.to_ns, end_ns) - span.from_ns;
    return length_ns;
  }
};

absl::StatusOr<Phases> FindPhase(const timeline::Input& input, const std::string& phase) {
  Phases phases;
  int64_t marked_ns = std::numeric_limits<int64_t>::min();
  const auto read = timeline::ReadTimeline(input, [&](const timeline::Entry& entry) {
    const std::optional<int64_t> instant = OwnInstantOf(entry);
    if (!instant) return absl::OkStatus();
    if (!phases.start_ns) phases.start_ns = instant;
    phases.end_ns = std::max(phases.end_ns, *instant);
    const auto* marker = std::get_if<v1::Marker>(&entry.record);
    if (marker == nullptr) return absl::OkStatus();
    // In the order of the file: none begins before the one that came before it.
    marked_ns = std::max(marked_ns, *instant);
    if (!phases.spans.empty() && phases.spans.back().IsOpen()) {
      phases.spans.back().to_ns = marked_ns;
    }
    if (marker->name() == phase) phases.spans.push_back({.from_ns = marked_ns});
    if (std::ranges::find(phases.names, marker->name()) == phases.names.end()) {
      phases.names.push_back(marker->name());
    }
    return absl::OkStatus();
  });
  if (!read.ok()) return read.status();
  if (!phases.spans.empty()) return phases;
  std::vector<std::string> names;
  names.reserve(phases.names.size());
  for (const std::string& name : phases.names) names.push_back(Printable(name));
  return absl::InvalidArgumentError(
      absl::StrCat(input.Name(), ": no phase '", Printable(phase), "'; ",
                   names.empty() ? "no phase was marked"
                                 : absl::StrCat("phases are: ", Listed(names, kPhasesNamed))));
}

absl::StatusOr<PartRead> ReadPhase(const timeline::Input& input, const std::string& phase,
                                   const timeline::EntrySink& sink) {
  if (input.IsStandardInput()) {
    return absl::InvalidArgumentError(
        "standard input can be read once, and a phase takes two readings: name a file");
  }
  const auto phases = FindPhase(input, phase);
  if (!phases.ok()) return phases.status();
  auto read = timeline::ReadTimeline(input, [&](const timeline::Entry& entry) {
    const std::optional<int64_t> instant = OwnInstantOf(entry);
    const bool passes = !instant || std::holds_alternative<v1::VcpuSet>(entry.record) ||
                        std::ranges::any_of(phases->spans, [&](const Span& span) {
                          return LiesIn(span, entry, *instant);
                        });
    return passes ? sink(entry) : absl::OkStatus();
  });
  if (!read.ok()) return read.status();
  return PartRead{.read = *std::move(read),
                  .start_mono_ns = phases->start_ns,
                  .phase_spans = phases->spans.size(),
                  .phase_length_ns = phases->LengthNs()};
}

}  // namespace

int64_t PlaceOf(const timeline::TickEntry& tick) {
  if (tick.previous == nullptr) return tick.sample.wake_ns;
  return std::midpoint(tick.sample.wake_ns, tick.previous->wake_ns);
}

absl::StatusOr<PartRead> ReadPart(const timeline::Input& input, const Part& part,
                                  const timeline::EntrySink& sink) {
  if (part.phase) return ReadPhase(input, *part.phase, sink);
  const bool is_part = part.from_ns || part.to_ns;
  const bool seeks = !input.IsStandardInput();
  std::optional<int64_t> start;
  timeline::TimeRange range;
  if (is_part && seeks) {
    const auto found = FindStart(input);
    if (!found.ok()) return found.status();
    start = found->mono_ns;
    if (start && part.from_ns) range.from_mono_ns = *start + *part.from_ns;
    // The tick whose middle lies just before the end is taken after it.
    const int64_t slack_ns = std::max(kLeastSlack_ns, 2 * found->interval_ns);
    if (start && part.to_ns) range.to_mono_ns = *start + *part.to_ns + slack_ns;
  }
  PartFilter filter(part, start);
  auto read = timeline::ReadTimeline(
      input,
      [&](const timeline::Entry& entry) {
        if (is_part && !filter.Passes(entry)) return absl::OkStatus();
        return sink(entry);
      },
      range);
  if (!read.ok()) return read.status();
  return PartRead{.read = *std::move(read),
                  .start_mono_ns = is_part ? filter.start() : std::nullopt};
}

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

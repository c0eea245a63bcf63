#include "monitor/stream/net/record_uplink.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kCollectorPatience{10'000};
constexpr absl::Duration kDrainStep = absl::Milliseconds(100);  // then it looks for a signal

}  // namespace

void PostedLines::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!post_) {
    directly_(line);
    return;
  }
  waiting_.push_back(line);
  post_([this] { PrintWaiting(); });
}

void PostedLines::GoThrough(Post post, Print print) {
  const std::lock_guard lock(mutex_);
  post_ = std::move(post);
  print_ = std::move(print);
}

void PostedLines::PrintWaiting() {
  const std::lock_guard lock(mutex_);
  if (!print_) return;
  for (const std::string& line : std::exchange(waiting_, {})) print_(line);
}

void PostedLines::GoDirectly() {
  const std::lock_guard lock(mutex_);
  for (const std::string& line : std::exchange(waiting_, {})) directly_(line);
  post_ = nullptr;
  print_ = nullptr;
}

absl::StatusOr<std::unique_ptr<RecordUplink>> RecordUplink::Start(const Options& options) {
  std::unique_ptr<RecordUplink> record(new RecordUplink(options));
  Uplink::Options of_uplink = options.uplink;
  of_uplink.say = [lines = &record->lines_](const std::string& line) { lines->Say(line); };
  auto uplink = Uplink::Start(std::move(of_uplink));
  if (!uplink.ok()) return uplink.status();
  record->uplink_ = *std::move(uplink);
  if (!options.require_collector) return record;
  const absl::Status connected = record->uplink_->AwaitConnected(kCollectorPatience);
  if (connected.ok()) return record;
  return absl::Status(connected.code(), absl::StrCat("--require-collector: ", connected.message()));
}

void RecordUplink::Take(std::span<const uint8_t> chunk) {
  uplink_->Offer(chunk);  // one that it cannot take it counts, and tells the collector of
}

void RecordUplink::ReloadCredentials() {
  uplink_->ReloadCredentials();
  if (options_.uplink.credentials.any()) {
    lines_.Say("SIGHUP: connecting anew with the certificate files as they are now");
  }
}

std::string RecordUplink::Drain() {
  StopWaitsOnSignals();
  // Not by the time of day, which may be set meanwhile.
  const auto left = [begin_ns = MonotonicNow_ns(), this] {
    return options_.drain - absl::Nanoseconds(MonotonicNow_ns() - begin_ns);
  };
  absl::Status finished;
  do {
    // At least until the uplink has looked, so that what is left is known.
    finished = uplink_->Finish(absl::ToChronoMilliseconds(kDrainStep));
  } while (absl::IsDeadlineExceeded(finished) && left() > absl::ZeroDuration() && !WasStopped());
  return Summary();
}

bool RecordUplink::HasFailed() const {
  const Uplink::Stats stats = uplink_->stats();
  if (stats.stream_conflicts > 0) return true;
  return options_.require_delivery && (stats.waiting_chunks > 0 || stats.lost_chunks > 0);
}

std::string RecordUplink::Summary() const {
  const Uplink::Stats stats = uplink_->stats();
  const uint64_t missing = stats.waiting_chunks + stats.lost_chunks;
  const bool is_nothing = stats.acknowledged_chunks == 0 && missing > 0;
  std::string text = absl::StrCat(
      options_.uplink.Destination(), ": ",
      is_nothing ? absl::StrCat("0 of ", Plural(missing, "chunk"), " delivered")
                 : absl::StrCat(Plural(stats.acknowledged_chunks, "chunk"), " acknowledged"),
      ", ", stats.lost_chunks, " lost");
  if (stats.lost_records > 0) {
    absl::StrAppend(&text, " (", Plural(stats.lost_records, "record"), ")");
  }
  if (stats.untold_records > 0) {
    absl::StrAppend(&text, "; the collector was not told that ",
                    Plural(stats.untold_records, "record"), " are lost");
  }
  if (stats.stream_conflicts > 0) {
    absl::StrAppend(&text,
                    "; another agent sends under the same stream id, so the recording is in ",
                    Plural(stats.stream_conflicts + 1, "stream"));
  }
  if (stats.waiting_chunks == 0) return text;
  absl::StrAppend(&text, "; ", Plural(stats.waiting_chunks, "chunk"), " not acknowledged: ");
  if (stats.spool_bytes > 0) {
    absl::StrAppend(&text, SizeText(stats.spool_bytes), " stay in ",
                    options_.uplink.spool.directory,
                    " for the next `vcpulse record --to` with this spool");
  }
  if (stats.spool_memory_bytes > 0) {
    absl::StrAppend(&text, stats.spool_bytes > 0 ? ", " : "", SizeText(stats.spool_memory_bytes),
                    " that the spool's disk did not take are lost");
  }
  return text;
}

}  // namespace vcpulse::stream

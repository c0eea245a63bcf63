#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "monitor/stream/net/uplink.h"

namespace vcpulse::stream {

// Prints lines that come from any thread: at once, or, while a loop owns the terminal, from that
// loop's thread, so that they do not tear its live line.
class PostedLines {
 public:
  using Post = std::function<void(std::function<void()>)>;
  using Print = std::function<void(const std::string&)>;

  // `directly` prints at once, from any thread.
  explicit PostedLines(Print directly)
      : directly_(directly ? std::move(directly) : [](const std::string&) {}) {}

  // Any thread.
  void Say(const std::string& line);
  // From now on lines are printed by `print`, called within what `post` is given.
  void GoThrough(Post post, Print print);
  // From now on they are printed at once again, what was posted and not called too. `post` and
  // `print` are not called any more; the loop no longer runs.
  void GoDirectly();

 private:
  void PrintWaiting();

  std::mutex mutex_;
  const Print directly_;
  Post post_;
  Print print_;
  std::vector<std::string> waiting_;
};

// The uplink of one recording: its chunks, what it says, its end.
class RecordUplink {
 public:
  struct Options {
    Uplink::Options uplink;  // `say` is set here
    bool require_collector = false;
    bool require_delivery = false;  // see HasFailed
    absl::Duration drain = absl::Seconds(5);
    PostedLines::Print say{};  // prints a line, from any thread; empty: nobody listens
  };

  // Begins to send what the spool holds of earlier recordings. Errors: of Uplink::Start;
  // where a collector is required, DeadlineExceeded if none answers within 10 s, and
  // PermissionDenied at once if none is of use (Uplink::Stats::obstacle).
  static absl::StatusOr<std::unique_ptr<RecordUplink>> Start(const Options& options);

  // Takes the next chunk, without waiting.
  void Take(std::span<const uint8_t> chunk);
  PostedLines& lines() { return lines_; }
  void ReloadCredentials();
  Uplink::Stats stats() const { return uplink_->stats(); }

  // After the last chunk: waits until the collector has all of them, as long as `drain` says or
  // until a signal comes (kvm/base/signals.h). A line that says what became of them.
  std::string Drain();

  // After Drain: whether the stream had to go on under a second id, or, where delivery is required,
  // not every chunk was acknowledged.
  bool HasFailed() const;

 private:
  explicit RecordUplink(const Options& options) : options_(options), lines_(options.say) {}

  std::string Summary() const;

  Options options_;
  PostedLines lines_;
  std::unique_ptr<Uplink> uplink_;  // its thread uses what is above
};

}  // namespace vcpulse::stream

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/net/uplink.h"
#include "tools/vcpulse/uplink_options.h"

namespace vcpulse::tools {

// Prints lines that come from any thread: at once, or, while a loop owns the terminal, from that
// loop's thread, so that they do not tear its live line.
class PostedLines {
 public:
  using Post = std::function<void(std::function<void()>)>;
  using Print = std::function<void(const std::string&)>;

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
  Post post_;
  Print print_;
  std::vector<std::string> waiting_;
};

// The uplink of one recording: its chunks, what it says, its end.
class RecordUplink {
 public:
  // Begins to send what the spool holds of earlier recordings. Errors: of stream::Uplink::Start;
  // where a collector is required, DeadlineExceeded if none answers within 10 s.
  static absl::StatusOr<std::unique_ptr<RecordUplink>> Start(const UplinkRequest& request);

  // Takes the next chunk, without waiting.
  void Take(std::span<const uint8_t> chunk);
  PostedLines& lines() { return lines_; }
  void ReloadCredentials();
  stream::Uplink::Stats stats() const { return uplink_->stats(); }

  // After the last chunk: waits until the collector has all of them, as long as --drain says or
  // until a signal comes, and prints what became of them.
  void Drain();

 private:
  explicit RecordUplink(const UplinkRequest& request) : request_(request) {}

  std::string Summary() const;

  UplinkRequest request_;
  PostedLines lines_;
  std::unique_ptr<stream::Uplink> uplink_;  // its thread uses what is above
};

}  // namespace vcpulse::tools

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/hotspots/symbols.h"
#include "monitor/http/server.h"
#include "monitor/page/answer.h"
#include "monitor/timeline/input.h"

namespace vcpulse::page {

// A timeline file, or a folder of them, as `report --serve` shows it. The page is kept until the
// file has grown; finer bins are read from the file when they are asked for. One thread.
class ServedTimeline {
 public:
  // `symbols` name hot addresses.
  explicit ServedTimeline(timeline::Input input, hotspots::GuestKernels symbols = {})
      : input_(std::move(input)), symbols_(std::move(symbols)) {}

  // Errors of all three: those of report::ReadPart.
  absl::StatusOr<std::string> Page();
  absl::StatusOr<std::string> Summary();
  // The stretch asked for, in bins of which the page's are multiples; read that far and no further.
  // Cancelled where `has_gone`, if given, says so meanwhile.
  absl::StatusOr<std::string> Bins(const BinsWanted& wanted,
                                   const std::function<bool()>& has_gone = nullptr);

  // Valid as long as this.
  Source AsSource();

 private:
  // What tells one state of the file, or of the timelines in a folder, from another.
  struct FileState {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    int64_t modified_ns = 0;
    bool operator==(const FileState&) const = default;
  };
  absl::Status Refresh();
  // As it is now; the default where it cannot be looked at.
  FileState Look() const;

  timeline::Input input_;
  hotspots::GuestKernels symbols_;
  FileState seen_;
  std::string page_;
  std::string summary_;
  int64_t start_mono_ns_ = 0;
  int64_t origin_mono_ns_ = 0;
  int64_t smallest_width_ns_ = 1;
  int64_t interval_ns_ = 0;
};

// The page over HTTP, on this machine alone.

// Serves `source` until SIGINT or SIGTERM, as http::Server does; its functions are called on the
// server's thread. `endpoint` is of http::ParseLoopbackAddress. `listening` is called once with the
// URL, on this thread, and ends it with an error. Errors: those of http::Server; that of
// `listening`.
absl::Status ServeOnLoopback(const http::Endpoint& endpoint, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening);

}  // namespace vcpulse::page

#include "monitor/page/served_timeline.h"

#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "kvm/base/clock.h"
#include "monitor/http/server.h"
#include "monitor/page/contents.h"
#include "monitor/page/packing.h"
#include "monitor/page/page.h"
#include "monitor/report/json_report.h"
#include "monitor/timeline/folder_source.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::page {
namespace {

// Of one answer: enough for 64 vCPUs in 4,000 bins.
constexpr size_t kMostBytes = size_t{20} << 20;
// A sample tells of the time before it: so much later it may have been taken.
constexpr int64_t kLateSamples_ns = 2'000'000'000;
constexpr int64_t kLateIntervals = 10;
// Between two looks at whether the client has gone.
constexpr uint64_t kEntriesPerLook = 256;
constexpr int64_t kLongestInterval_ns = 3'600'000'000'000;

}  // namespace

ServedTimeline::FileState ServedTimeline::Look() const {
  struct stat status{};
  if (stat(input_.path().c_str(), &status) != 0) return {};
  FileState state{.device = status.st_dev,
                  .inode = status.st_ino,
                  .size = status.st_size,
                  .modified_ns = ToNs(status.st_mtim)};
  if (!S_ISDIR(status.st_mode)) return state;
  // A folder's own time does not change where a file in it grows.
  const auto files = timeline::TimelinesIn(input_.path());
  if (!files.ok()) return {};
  state.size = 0;
  for (const std::string& file : *files) {
    if (stat(file.c_str(), &status) != 0) continue;
    state.size += status.st_size;
    state.modified_ns = std::max(state.modified_ns, ToNs(status.st_mtim));
  }
  return state;
}

absl::Status ServedTimeline::Refresh() {
  const FileState state = Look();
  if (state != FileState{} && state == seen_) return absl::OkStatus();
  const auto contents = Contents::Read(input_, {});
  if (!contents.ok()) return contents.status();
  (*contents)->NameBy(symbols_);
  const report::Report& report = (*contents)->report();
  start_mono_ns_ = report.Start().value_or(0);
  if (const auto& bins = (*contents)->collected().bins()) {
    origin_mono_ns_ = bins->origin_ns();
    smallest_width_ns_ = bins->smallest_width_ns();
  }
  const auto& session = report.summary.session();
  interval_ns_ = session ? static_cast<int64_t>(session->interval_ns()) : 0;
  page_ = RenderPage(**contents, true);
  summary_ = report::RenderJson(report);
  seen_ = state;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ServedTimeline::Page() {
  if (absl::Status status = Refresh(); !status.ok()) return status;
  return page_;
}

absl::StatusOr<std::string> ServedTimeline::Summary() {
  if (absl::Status status = Refresh(); !status.ok()) return status;
  return summary_;
}

absl::StatusOr<std::string> ServedTimeline::Bins(const BinsWanted& wanted,
                                                 const std::function<bool()>& has_gone) {
  if (seen_.size < 0) {
    if (absl::Status status = Refresh(); !status.ok()) return status;
  }
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  if (__builtin_add_overflow(start_mono_ns_, wanted.from_ns, &from_ns) ||
      __builtin_add_overflow(start_mono_ns_, wanted.to_ns, &to_ns)) {
    return absl::InvalidArgumentError("the times asked for are beyond any clock");
  }
  int64_t width_ns = smallest_width_ns_;
  while (width_ns < (to_ns - from_ns) / wanted.bins) width_ns *= 2;
  Collector collector({.origin_ns = origin_mono_ns_,
                       .width_ns = width_ns,
                       .most_bytes = kMostBytes,
                       .from_ns = from_ns,
                       .to_ns = to_ns});
  const int64_t late_ns = std::max(
      kLateSamples_ns, kLateIntervals * std::clamp<int64_t>(interval_ns_, 0, kLongestInterval_ns));
  int64_t until_ns = 0;
  timeline::TimeRange range{.from_mono_ns = from_ns};
  if (!__builtin_add_overflow(to_ns, late_ns, &until_ns)) range.to_mono_ns = until_ns;
  metric::IntervalReader intervals;
  uint64_t entries = 0;
  const auto read = timeline::ReadTimeline(
      input_,
      [&](const timeline::Entry& entry) {
        if (has_gone && ++entries % kEntriesPerLook == 0 && has_gone()) {
          return absl::CancelledError("nobody waits for it any more");
        }
        collector.Take(entry);
        return intervals.Add(entry, [&collector](const metric::Interval& interval) {
          collector.Add(interval);
          return absl::OkStatus();
        });
      },
      range);
  if (!read.ok()) return read.status();
  return Pack(collector, start_mono_ns_, "", true);
}

Source ServedTimeline::AsSource() {
  return {.page = [this] { return Page(); },
          .summary = [this] { return Summary(); },
          .bins = [this](const BinsWanted& wanted,
                         const std::function<bool()>& has_gone) { return Bins(wanted, has_gone); }};
}

absl::Status ServeOnLoopback(const http::Endpoint& endpoint, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening) {
  boost::asio::io_context context(1);
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([](boost::system::error_code, int) {});  // the only work: run() waits for it
  const auto server = http::Server::Start(
      endpoint, [&source](const http::Request& request) { return Answer(request, source); });
  if (!server.ok()) return server.status();
  absl::Status told = listening(http::UrlOf(endpoint.host, (*server)->port()));
  if (!told.ok()) return told;
  context.run();
  return absl::OkStatus();
}

}  // namespace vcpulse::page

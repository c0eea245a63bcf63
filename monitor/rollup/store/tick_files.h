#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/export/parquet.h"
#include "monitor/rollup/store/derived_store.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::rollup {

// The ticks of what a collector stores, as Parquet: for each timeline file that is closed
// PARQUET/date=YYYY-MM-DD/host=AGENT/STREAMID-FIRST.parquet, with the date of its first row (UTC)
// and FIRST, the first sequence number, as in the timeline's name. The newest file of a stream is
// closed when the recording has ended, or it has not changed for 10 minutes. All files of a stream
// have the rows of one export: what an interval depends on goes on from file to file, and after a
// restart it is read again from the beginning. A file appears whole, and is made again only where
// its timeline has grown since. Timelines are read from the kernel's files, whatever `files` are.
// One thread.
class TickFiles final : public DerivedStore {
 public:
  struct Options {
    std::string directory;                // of the collector
    std::string parquet;                  // exists
    std::optional<int64_t> max_age_ns{};  // since the day of a file has ended; nothing: for ever
    std::string version;                  // of this program
    std::function<void(const std::string&)> say;  // what cannot be read or written, once
  };

  TickFiles(stream::Files& files, Options options)
      : files_(files), options_(std::move(options)), said_("--parquet", options_.say) {}

  void Pass(const Now& now, const std::stop_token& stopped) override;
  void RemoveOld(int64_t realtime_ns) override;

 private:
  static constexpr int64_t kSilence_ns = 600'000'000'000;
  static constexpr int64_t kSettled_ns = 5'000'000'000;  // no look at the end of one that grows

  struct Stream {
    std::set<std::string> done;  // names of timelines
    // What it was given so far, the last one being `read_to`; null: it begins again.
    std::unique_ptr<exporting::ParquetExport> rows;
    std::string read_to;
    // The newest one, where it is done at this size.
    std::string newest;
    uint64_t newest_bytes = 0;
    int64_t failed_until_ns = 0;  // of the wall clock
  };
  // A timeline.
  struct Source {
    StreamKey key;
    std::string folder;
    std::span<const std::string> before;  // the names of those before it in its stream
    std::string timeline;                 // its name
    std::string name;                     // of the Parquet file

    std::string Path() const { return folder + "/" + timeline; }
  };

  void FindMade();
  absl::Status PassStream(const StreamKey& key, Stream& stream, int64_t realtime_ns,
                          const std::stop_token& stopped);
  absl::StatusOr<bool> IsClosed(const std::string& path, int64_t realtime_ns);
  absl::Status MakeUnlessMade(const Source& source, Stream& stream, int64_t realtime_ns,
                              const std::stop_token& stopped);
  absl::Status Make(const Source& source, Stream& stream, const std::stop_token& stopped);
  absl::Status ReadBefore(const Source& source, Stream& stream, const std::stop_token& stopped);
  absl::StatusOr<std::optional<int64_t>> WriteRows(const Source& source,
                                                   exporting::ParquetExport& rows,
                                                   const std::string& part,
                                                   const std::stop_token& stopped);

  stream::Files& files_;
  const Options options_;
  SaidOnce said_;
  std::map<StreamKey, Stream> streams_;
  // The Parquet files, by folder of the agent and name. Nothing before the first pass.
  std::optional<std::map<std::pair<std::string, std::string>, std::string>> made_;
};

}  // namespace vcpulse::rollup

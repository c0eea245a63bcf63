#pragma once

// monitor/rollup/store keeps what is derived from the timelines that a collector stores: rollups,
// and Parquet files of ticks. It reads the timelines that are on the disk and nothing else, so
// everything here can be made again from them.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::rollup {

inline constexpr int64_t kDay_ns = 86'400'000'000'000;
inline constexpr int64_t kRetryAfter_ns = 60'000'000'000;  // what failed is tried again

struct Now {
  int64_t realtime_ns = 0;  // since 1970
  int64_t boottime_ns = 0;  // CLOCK_BOOTTIME: nobody sets it
};

// One kind of it, of all streams. One thread.
class DerivedStore {
 public:
  virtual ~DerivedStore() = default;

  // Takes what is new, unless it is stopped meanwhile.
  virtual void Pass(const Now& now, const std::stop_token& stopped) = 0;
  // Removes what is older than it is kept.
  virtual void RemoveOld(int64_t realtime_ns) = 0;
};

// Stores on a thread of their own ("vcpulse-derive"), which yields the processor to all others.
class DerivingThread {
 public:
  DerivingThread(std::vector<std::unique_ptr<DerivedStore>> stores, Clock realtime);
  // Leaves what it has not written yet: it is made again.
  ~DerivingThread();
  DerivingThread(const DerivingThread&) = delete;
  DerivingThread& operator=(const DerivingThread&) = delete;

 private:
  void Run(const std::stop_token& stopped);

  const std::vector<std::unique_ptr<DerivedStore>> stores_;
  const Clock realtime_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// Says each error once. One thread.
class SaidOnce {
 public:
  // `flag` stands before the words.
  SaidOnce(std::string flag, std::function<void(const std::string&)> say)
      : flag_(std::move(flag)), say_(std::move(say)) {}
  void Say(const absl::Status& status);

 private:
  const std::string flag_;
  const std::function<void(const std::string&)> say_;
  std::set<std::string> said_;
};

using StreamKey = std::pair<std::string, std::string>;  // folders of agent and stream

// The streams below a collector's directory. Errors: what cannot be read; a folder that is removed
// meanwhile is none.
absl::StatusOr<std::set<StreamKey>> StreamsBelow(stream::Files& files,
                                                 const std::string& directory);

// The timelines in a stream's folder, in order. Errors: those of Files::List.
absl::StatusOr<std::vector<std::string>> TimelinesIn(stream::Files& files,
                                                     const std::string& folder);

// A file in `root`/date=YYYY-MM-DD/host=AGENT.
struct DatedFile {
  std::string date_folder;  // "date=2026-11-27"
  std::string host_folder;
  std::string name;
};

// Calls `is_to_be_removed` with each of them; where it says so, the file is removed, and folders
// that are empty then. Files and folders whose paths are in `in_use` are left alone. Failures are
// reported to `said`.
void ForEachDatedFile(stream::Files& files, const std::string& root, SaidOnce& said,
                      const std::function<bool(const DatedFile&)>& is_to_be_removed,
                      const std::set<std::string>& in_use = {});

// An instant in UTC by absl's `format`.
std::string Utc(const char* format, int64_t realtime_ns);

}  // namespace vcpulse::rollup

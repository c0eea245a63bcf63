#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kvm/base/clock.h"
#include "monitor/rollup/store/stream_rollup.h"
#include "monitor/stream/disk/files.h"
#include "monitor/stream/disk/retention.h"

namespace vcpulse::rollup {

// The rollups of all streams below a collector's directory. One thread.
class RollupStore {
 public:
  struct Options {
    std::string directory;
    std::vector<StoredLevel> levels;
    std::function<void(const std::string&)> say;  // what cannot be read or written, once
  };

  RollupStore(stream::Files& files, Options options)
      : files_(files), options_(std::move(options)) {}

  // Takes what is new, unless it is stopped meanwhile.
  void Pass(int64_t realtime_ns, const std::stop_token& stopped = {});
  // Removes rollups older than their level allows, by the time that they are of.
  void RemoveOld(int64_t realtime_ns);

 private:
  using StreamKey = std::pair<std::string, std::string>;  // folders of agent and stream

  std::vector<std::string> FoldersIn(const std::string& folder);
  void RemoveOldOf(const StoredLevel& level, int64_t realtime_ns);
  void SayOnce(const absl::Status& status);

  stream::Files& files_;
  const Options options_;
  std::map<StreamKey, std::unique_ptr<StreamRollup>> streams_;
  std::map<StreamKey, int64_t> failed_until_ns_;  // of the wall clock
  std::set<std::string> said_;
};

// A store on a thread of its own ("vcpulse-rollup"), which yields the processor to all others.
class RollupThread {
 public:
  RollupThread(stream::Files& files, RollupStore::Options options, Clock realtime);
  // Leaves what it has not written yet: it is made again.
  ~RollupThread();
  RollupThread(const RollupThread&) = delete;
  RollupThread& operator=(const RollupThread&) = delete;

 private:
  void Run(const std::stop_token& stopped);

  RollupStore store_;
  const Clock realtime_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace vcpulse::rollup

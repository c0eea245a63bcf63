#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "monitor/rollup/store/derived_store.h"
#include "monitor/rollup/store/stream_rollup.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::rollup {

// The rollups of all streams below a collector's directory. One thread.
class RollupStore final : public DerivedStore {
 public:
  struct Options {
    std::string directory;
    std::vector<StoredLevel> levels;
    std::function<void(const std::string&)> say;  // what cannot be read or written, once
  };

  RollupStore(stream::Files& files, Options options)
      : files_(files),
        options_(std::move(options)),
        said_("--rollup", options_.say),
        shared_{.files = files, .levels = options_.levels, .said = said_} {}

  void Pass(const Now& now, const std::stop_token& stopped) override;
  // Removes rollups whose slice ended longer ago than their level allows.
  void RemoveOld(int64_t realtime_ns) override;

 private:
  stream::Files& files_;
  const Options options_;
  SaidOnce said_;
  StreamRollup::Shared shared_;
  std::map<StreamKey, std::unique_ptr<StreamRollup>> streams_;
  std::map<StreamKey, int64_t> failed_until_ns_;  // CLOCK_BOOTTIME
};

}  // namespace vcpulse::rollup

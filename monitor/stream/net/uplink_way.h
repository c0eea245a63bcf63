#pragma once

// Of the uplink: what takes chunks into the spool and brings them somewhere. Only .cc files of
// monitor/stream include this.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/stream/disk/spool.h"
#include "monitor/stream/net/uplink.h"

namespace vcpulse::stream {

// The way out of the spool: to a collector on a socket (UplinkLoop), or to a broker. All of it on
// the thread that runs the uplink's io_context.
class UplinkWay {
 public:
  // What was handed over, in order: a chunk, or records that are lost.
  struct Offered {
    timeline::StreamId stream{};
    std::optional<timeline::ChunkHeader> header{};  // of a chunk
    std::vector<uint8_t> chunk{};
    v1::LostRecords lost{};  // else
  };

  virtual ~UplinkWay() = default;
  UplinkWay(const UplinkWay&) = delete;
  UplinkWay& operator=(const UplinkWay&) = delete;

  virtual void Begin() = 0;
  virtual void Take(const std::deque<Offered>& offered) = 0;
  // Somebody waits for a connection, though there may be nothing to send.
  virtual void WantConnection() = 0;
  // Connects anew, with the credentials as they are now.
  virtual void Reconnect() = 0;
  // Stops for good; the owner stops the context then.
  virtual void End() = 0;
  // Spool and connection now; not the queue before them.
  virtual void Fill(Uplink::Stats& stats) const = 0;

 protected:
  // `changed` is called after each change of what Fill tells. The options outlive the way.
  UplinkWay(const Uplink::Options& options, std::unique_ptr<Spool> spool,
            std::function<void()> changed)
      : options_(options), spool_(std::move(spool)), changed_(std::move(changed)) {}

  // Into the spool.
  void Keep(const std::deque<Offered>& offered);
  // One that is longer than what is sent as one: its records, in several.
  void KeepInPieces(const Offered& offered);
  // Called at least each second: syncs the spool each few, and says what its disk does.
  void CareForSpool(int64_t now_ns);
  void SayDiskStatus();
  // What is lost, waits and lies in the spool.
  void FillFromSpool(Uplink::Stats& stats) const;

  const Uplink::Options& options_;
  const std::unique_ptr<Spool> spool_;
  const std::function<void()> changed_;
  Uplink::Stats stats_;  // but for what Fill adds

 private:
  int64_t synced_ns_ = 0;
  std::string said_disk_;
  int64_t said_disk_ns_ = std::numeric_limits<int64_t>::min() / 2;
};

}  // namespace vcpulse::stream

#pragma once

// Of the uplink: spool and connection. Only .cc files of this module include this.

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/disk/spool.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/net/uplink.h"
#include "monitor/stream/protocol/agent_session.h"

namespace vcpulse::stream {

// Takes chunks into the spool and brings them to a collector. All of it on the thread that runs the
// io_context.
class UplinkLoop : public std::enable_shared_from_this<UplinkLoop> {
 public:
  // What was handed over, in order: a chunk, or records that are lost.
  struct Offered {
    timeline::StreamId stream{};
    std::optional<timeline::ChunkHeader> header{};  // of a chunk
    std::vector<uint8_t> chunk{};
    v1::LostRecords lost{};  // else
  };

  // `changed` is called after each change of what Fill tells. The options outlive the loop.
  UplinkLoop(boost::asio::io_context& context, const Uplink::Options& options,
             std::unique_ptr<Spool> spool, std::function<void()> changed);

  void Begin();
  void Take(const std::deque<Offered>& offered);
  // Somebody waits for a connection, though there may be nothing to send.
  void WantConnection();
  // Connects anew, with the credentials as they are now.
  void Reconnect();
  void End();

  // Spool and connection now; not the queue before them.
  void Fill(Uplink::Stats& stats) const;

 private:
  void StartTicking();
  void Tick();
  // Connects for the stream whose turn it is, unless it is connected for it.
  void ConnectIfNeeded();
  // The oldest stream of which something is held, but for those that were refused a moment ago.
  std::optional<timeline::StreamId> Turn() const;
  // Whether the connection may make way for another stream: its own is done, or of less urgency.
  bool IsFree(const std::optional<timeline::StreamId>& turn);
  void Connected(absl::StatusOr<std::shared_ptr<Channel>> channel);
  v1::ClockSnapshot Clocks() const;
  void Read();
  void TakeBytes(size_t bytes);
  // Sends what credit and spool allow.
  void Pump();
  // One item of the stream; false where there is none to be sent now.
  bool SendNext();
  void Flush();
  void TakeWelcome();
  void SayStreaming();
  void TakeProgress();
  // The connection has failed, or could not be made: tries again later.
  void Fail(const std::string& why);
  void Disconnect();
  void ScheduleRetry(bool next_address);
  void SayDiskStatus();

  boost::asio::io_context& context_;
  const Uplink::Options& options_;
  std::unique_ptr<Spool> spool_;
  std::function<void()> changed_;
  boost::asio::steady_timer ticks_;
  boost::asio::steady_timer retry_;

  std::shared_ptr<ConnectAttempt> connecting_;
  std::shared_ptr<Channel> channel_;
  std::optional<AgentSession> session_;
  timeline::StreamId stream_{};
  std::set<timeline::StreamId> found_;  // in the spool, when it was opened
  bool is_probe_ = false;               // connected with nothing to send, to see whether one can
  bool write_pending_ = false;
  bool retry_pending_ = false;
  bool wanted_ = false;
  bool ended_ = false;
  uint64_t connection_ = 0;  // number of the channel, so that handlers of an old one are known
  int64_t synced_ns_ = 0;
  size_t address_ = 0;
  std::map<timeline::StreamId, int64_t> refused_ns_;  // streams that a collector did not take, when
  Backoff backoff_;
  std::array<uint8_t, 16384> buffer_{};
  std::vector<uint8_t> writing_;

  Uplink::Stats stats_;
  std::string said_error_;
  std::string said_disk_;
  int64_t said_disk_ns_ = std::numeric_limits<int64_t>::min() / 2;
  std::string said_streaming_;
};

}  // namespace vcpulse::stream

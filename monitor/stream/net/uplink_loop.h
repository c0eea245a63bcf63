#pragma once

// Of the uplink: spool and connection. Only .cc files of this module include this.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/disk/spool.h"
#include "monitor/stream/net/backoff.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/net/uplink_way.h"
#include "monitor/stream/protocol/agent_session.h"

namespace vcpulse::stream {

// To a collector, over a socket.
class UplinkLoop final : public UplinkWay, public std::enable_shared_from_this<UplinkLoop> {
 public:
  UplinkLoop(boost::asio::io_context& context, const Uplink::Options& options,
             std::unique_ptr<Spool> spool, std::function<void()> changed);

  void Begin() override;
  void Take(const std::deque<Offered>& offered) override;
  void WantConnection() override;
  void Reconnect() override;
  void End() override;
  void Fill(Uplink::Stats& stats) const override;

 private:
  // The way to the collector is in one of these states, which has what is valid in it alone.
  struct Idle {};  // there is nothing to send
  struct Connecting {
    std::optional<timeline::StreamId> stream;  // nothing: only to see whether one can connect
    std::shared_ptr<ConnectAttempt> attempt;
  };
  // Connected, from the Hello on. Handlers share it, so that one that is over can be told.
  struct Link {
    std::optional<timeline::StreamId> stream;
    std::shared_ptr<Channel> channel;
    AgentSession session;
    std::vector<uint8_t> writing{};  // not empty: it is under way

    bool streams() const { return stream && session.welcomed(); }
  };
  using SharedLink = std::shared_ptr<Link>;
  struct Waiting {  // to connect again
    boost::asio::steady_timer timer;
  };
  struct Over {  // it never connects again
    std::string refusal{};
  };

  // Null in any other state.
  SharedLink link() const;
  void StartTicking();
  void Tick();
  // Connects for the stream whose turn it is, where that is not waited for; a link for another one
  // makes way.
  void ConnectIfNeeded();
  // The oldest stream of which something is held, but for those that were refused a moment ago.
  std::optional<timeline::StreamId> Turn() const;
  void BeginSession(std::shared_ptr<Channel> channel);
  // The last record of the stream that a collector can have; nothing where it is not known.
  std::optional<uint64_t> LastSent(const timeline::StreamId& stream) const;
  // When the stream began by the wall clock, where its first chunk is held.
  std::optional<int64_t> StartOf(const timeline::StreamId& stream) const;
  // A collector has records of the stream that were not sent: it is not sent to that one, or, where
  // it is still being made, goes on under a new id for good. What is then said of it.
  std::string TakeConflict(const timeline::StreamId& stream);
  v1::ClockSnapshot Clocks() const;
  void Read(const SharedLink& link);
  void TakeBytes(const SharedLink& link, std::span<const uint8_t> bytes);
  // Sends what credit and spool allow.
  void Pump(const SharedLink& link);
  // One item of the stream; false where there is none to be sent now.
  bool SendNext(Link& link);
  void Flush(const SharedLink& link);
  void TakeWelcome(const Link& link);
  void SayStreaming();
  void TakeProgress(const Link& link);
  // The link has failed, or could not be made: tries again later. `needs_people`: it will fail
  // likewise until somebody changes something.
  void Fail(const std::string& why, bool needs_people = false);
  // Idle, whatever it was.
  void Disconnect();
  void Wait(bool for_next_address);

  boost::asio::io_context& context_;
  boost::asio::steady_timer ticks_;
  std::variant<Idle, Connecting, SharedLink, Waiting, Over> state_;

  std::set<timeline::StreamId> found_;  // in the spool, when it was opened
  // Of streams that began in this process: the last record that was ever sent.
  std::map<timeline::StreamId, uint64_t> sent_;
  bool wanted_ = false;  // a connection, though there may be nothing to send
  size_t address_ = 0;
  std::set<size_t> unusable_;  // addresses at which somebody must change something first
  std::map<timeline::StreamId, int64_t> refused_ns_;  // streams that a collector did not take, when
  Backoff backoff_;

  std::string said_error_;
  std::string said_streaming_;
};

}  // namespace vcpulse::stream

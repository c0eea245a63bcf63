#pragma once

// Of the collector: one connection. Only .cc files of this module include this.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/disk/stream_folders.h"
#include "monitor/stream/net/memory.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/protocol/collector_session.h"

namespace vcpulse::stream {

// Moves bytes between a channel and a CollectorSession. One thread, that of the io_context.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  // Whoever has the peers. Called on the thread of the io_context.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::Status Hello(Peer& peer, const v1::Hello& hello) = 0;
    virtual absl::Status Chunk(Peer& peer, const timeline::ChunkHeader& header,
                               std::span<const uint8_t> bytes) = 0;
    virtual absl::Status Gap(Peer& peer, const v1::LostRecords& lost) = 0;
    // Once, when the connection is of no more use: why, OK where the peer has closed it. Its last
    // words may still be on their way.
    virtual void Ended(Peer& peer, const absl::Status& why) = 0;
    // Whether this peer is to be read from now.
    virtual bool MayRead(const Peer& peer) const = 0;
    // When it may be, for the sake of others: now or earlier where at once.
    virtual int64_t NextRead_ns(const Peer& peer, int64_t now_ns) const = 0;
    // What it has sent took so much of the thread's time, until now.
    virtual void Took(const Peer& peer, int64_t time_ns, int64_t now_ns) = 0;
    // A peer holds more memory than before.
    virtual void HoldsMore() = 0;
  };

  Peer(boost::asio::io_context& context, uint64_t id, Arrival arrival, const SessionLimits& limits,
       Owner& owner, std::shared_ptr<Buffered> buffered);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The handshake of the channel, then frames.
  void Start();
  // Drops what was queued, sends an Error in words and closes; does not tell the owner.
  void Refuse(v1::Error::Code code, const std::string& reason);
  // Likewise, but sends what was queued first.
  void Dismiss(v1::Error::Code code, const std::string& reason);
  // Time passes.
  void Tick(const v1::ClockSnapshot& clock, int64_t now_ns);
  // Goes on reading where the owner had said no.
  void ReadOn();
  // Sends what the session has put out, then what was queued.
  void Flush();
  // Queues frames, which Flush sends.
  void Queue(SharedFrames frames);
  // Once refused: gives back the memory of an unfinished frame. Not from within its owner's calls.
  void DropInput();
  // At once; without telling the owner.
  void Close();

  uint64_t id() const { return id_; }
  const std::string& from() const { return arrival_.from; }
  const Arrival& arrival() const { return arrival_; }
  CollectorSession& session() { return session_; }
  bool ended() const { return ended_; }
  size_t queued_bytes() const { return queued_bytes_; }
  size_t memory() const { return memory_; }  // bytes, without what was queued

  // What the owner knows of it.
  std::optional<v1::Hello> hello{};
  std::optional<StreamKey> stream{};  // that it was let in to send
  bool is_follower = false;           // was let in as one; its owner bounds what it is sent
  uint64_t pending_bytes = 0;         // received, not yet settled on disk
  // The peer's CLOCK_MONOTONIC minus ours; nothing where it does not tell.
  std::optional<int64_t> peer_clock_offset_ns{};

 private:
  void Read();
  // How long it must wait before it is read from again, ns.
  int64_t WaitBeforeRead_ns(int64_t now_ns);
  // Is not being read from now on, for reasons of ours.
  void Pause(int64_t now_ns);
  // The time of a pause so far does not count against the peer.
  void ExcusePause(int64_t now_ns);
  void TakeBytes(std::span<const uint8_t> bytes);
  void Fail(const absl::Status& why);
  void DropQueue();
  // Sends what is left, then ends writing and waits for the peer to close, a little while.
  void Linger();
  void LingerRead();
  // Notes what the connection holds now.
  void Account();

  uint64_t id_;
  Arrival arrival_;
  SessionLimits limits_;
  Owner& owner_;
  CollectorSession session_;
  boost::asio::steady_timer timer_;
  std::vector<uint8_t> writing_;
  std::deque<SharedFrames> queue_;
  SharedFrames writing_frames_;  // instead of writing_
  size_t queued_bytes_ = 0;
  std::shared_ptr<Buffered> buffered_;
  size_t memory_ = 0;     // as buffered_ has it
  bool secured_ = false;  // the channel's handshake is done
  bool reading_ = false;
  bool write_pending_ = false;
  bool lingering_ = false;
  bool ended_ = false;
  int64_t write_begun_ns_ = 0;
  std::optional<int64_t> paused_ns_;
  double rate_credit_ = 0;  // bytes that may be read at once
  int64_t rate_ns_ = 0;
};

}  // namespace vcpulse::stream

#pragma once

// Of the collector: all its connections. Only .cc files of this module include this.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/net/agent_table.h"
#include "monitor/stream/net/collector.h"
#include "monitor/stream/net/committer.h"
#include "monitor/stream/net/event_log.h"
#include "monitor/stream/net/followers.h"
#include "monitor/stream/net/peer.h"
#include "monitor/stream/net/pending.h"
#include "monitor/stream/net/sockets.h"
#include "monitor/stream/net/storage_failures.h"
#include "monitor/stream/net/time_shares.h"

namespace vcpulse::stream {

// The network side: takes connections, decides who may send what, hands chunks to the committer and
// acknowledges what it made durable. All of it on the thread that runs the io_context, but for
// FillStats, SetTls and TakeReport.
class CollectorLoop final : public Peer::Owner {
 public:
  CollectorLoop(boost::asio::io_context& context, const Collector::Options& options);
  ~CollectorLoop() override;
  CollectorLoop(const CollectorLoop&) = delete;
  CollectorLoop& operator=(const CollectorLoop&) = delete;

  // Listens at all addresses. Errors: of Listener::Listen.
  absl::Status Listen();
  void StartTicking();
  std::vector<Address> addresses() const;
  // The committer of the chunks; outlives all that runs on the context.
  // Null before it ends; nothing is stored any more then.
  void set_committer(Committer* committer) {
    const std::lock_guard lock(mutex_);  // FillStats asks it
    committer_ = committer;
  }

  // Takes no more connections and reads nothing more.
  void StopReading();
  // Tells the peers that the collector ends, and closes.
  void Shutdown();
  // Peers whose last words have not gone out.
  bool AnyAlive() const;
  void CloseAll();

  // What the committer has done. Any thread.
  void TakeReport(std::vector<Committer::Progress> report);
  // For connections to come; those that it would not take are ended. Any thread.
  void SetTls(std::shared_ptr<TlsContext> tls);
  void FillStats(Collector::Stats& stats) const;

  absl::Status Hello(Peer& peer, const v1::Hello& hello) override;
  absl::Status Chunk(Peer& peer, const timeline::ChunkHeader& header,
                     std::span<const uint8_t> bytes) override;
  absl::Status Gap(Peer& peer, const v1::LostRecords& lost) override;
  void Ended(Peer& peer, const absl::Status& why) override;
  bool MayRead(const Peer& peer) const override;
  int64_t NextRead_ns(const Peer& peer, int64_t now_ns) const override;
  void Took(const Peer& peer, int64_t time_ns, int64_t now_ns) override;
  void HoldsMore() override;

 private:
  using Id = Committer::ConnectionId;

  void Take(Arrival arrival);
  // Makes room for one more connection, at the cost of one that has not said who it is.
  bool MakeRoom();
  void Tick();
  absl::Status RefuseTo(Peer& peer, v1::Error::Code code, const std::string& reason);
  Identity IdentityOf(const Peer& peer) const;
  absl::Status HelloOfAgent(Peer& peer, const v1::Hello& hello);
  absl::Status HelloOfFollower(Peer& peer, const v1::Hello& hello);
  // A chunk of so many bytes of it, none where it tells of lost records, waits for the disk.
  void Hold(Peer& peer, size_t chunk);
  // Acknowledges, or refuses the peer where it could not be stored.
  void TakeProgress(const Committer::Progress& progress);
  // To followers, also of a peer that has gone.
  void Forward(const Committer::Progress& progress);
  // Of a peer, or of one that has gone while something of it is not durable. Null: neither.
  const v1::Hello* HelloOf(Id connection) const;
  // What came of writing a stream: an error, or that it works.
  void NoteStorage(const StreamKey& stream, const absl::Status& status);
  void CloseSlowFollowers();
  // It is no peer any more; its last words may still be on their way.
  void Remove(Peer& peer, bool in_error);
  void ReadOn();
  // A line about this peer, under `what` where it was let in.
  void SayOf(const Peer& peer, const std::string& what, const std::string& line);
  // Ends the connections whose certificate is not good any more, by these or by its date.
  void RecheckPeers(TlsContext& tls);
  void EndExpired();
  // Closes connections until the rest holds no more than its share.
  void Relieve();
  // Why the connection is one too many of its agent id, or of all followers; nothing where not.
  std::optional<std::string> OneTooMany(const Peer& peer, const v1::Hello& hello) const;
  size_t Strangers() const;

  boost::asio::io_context& context_;
  const Collector::Options& options_;
  const std::string host_name_;
  Committer* committer_ = nullptr;
  std::vector<std::unique_ptr<Listener>> listeners_;
  boost::asio::steady_timer ticks_;
  const MemoryShares shares_;
  const std::shared_ptr<Buffered> buffered_ = std::make_shared<Buffered>();
  bool relieves_ = false;  // it is on its way
  std::map<Id, std::shared_ptr<Peer>> peers_;
  std::deque<std::weak_ptr<Peer>> lingering_;
  // Agents that have gone while what they sent is still being written.
  std::map<Id, v1::Hello> departed_;
  std::map<StreamKey, Id> senders_;
  Followers followers_;
  EventLog log_;
  StorageFailures failures_;
  int64_t rechecked_ns_ = 0;
  Id next_id_ = 1;
  // Read by FillStats, changed by the network thread alone.
  Pending pending_;
  std::atomic<uint64_t> connections_ = 0;
  bool reads_ = true;
  TimeShares times_;
  AgentTable agents_;

  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<TlsContext> tls_;
  Collector::Stats totals_;
};

}  // namespace vcpulse::stream

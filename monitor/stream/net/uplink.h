#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/disk/spool.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/stream/protocol/agent_session.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace vcpulse::stream {

class UplinkWay;

// Streams chunks to a collector from a thread of its own: into the spool, out of the spool onto the
// socket, out of the spool for good once acknowledged. Connects again for ever, with jittered
// exponential backoff, to its addresses in turn.
class Uplink {
 public:
  struct Options {
    std::vector<Address> addresses;  // tried in order; the next one where one does not answer
    AgentIdentity identity;
    Spool::Options spool;
    Files* files = nullptr;       // of the spool; null: KernelFiles()
    CredentialFiles credentials;  // needed where an address is tls
    bool allow_insecure = false;  // plain tcp to other hosts
    // The streams that are offered were made before, and a collector may have more of them than is
    // held here (replay). Those that are found in the spool are taken so in any case.
    bool sends_old_streams = false;
    // Where no address is of use until somebody changes something (Stats::obstacle), none is tried
    // again; AwaitRoom and Finish say so.
    bool ends_when_refused = false;
    // Bytes that wait for the thread; what does not fit is lost and counted.
    size_t max_queue_bytes = 16u << 20;
    std::chrono::milliseconds first_backoff{200};
    std::chrono::milliseconds longest_backoff{30'000};
    // Makes another way out than to `addresses`: to a broker. Empty: to those.
    std::function<std::shared_ptr<UplinkWay>(boost::asio::io_context&, const Options&,
                                             std::unique_ptr<Spool>, std::function<void()> changed)>
        make_way;
    std::string way_name;  // where that goes, for people
    // One line for people when something changes: connected, lost, refused, spool full. Called on
    // the uplink's thread.
    std::function<void(const std::string&)> say;

    // Where the chunks go, for people.
    std::string Destination() const { return make_way ? way_name : ToText(addresses); }
  };

  struct Stats {
    bool connected = false;
    uint64_t connects = 0;  // handshakes that were answered with Welcome
    uint64_t sent_chunks = 0;
    uint64_t acknowledged_chunks = 0;
    uint64_t lost_chunks = 0;  // dropped in queue or spool, or unreadable
    uint64_t lost_records = 0;
    uint64_t untold_records = 0;  // lost, and the collector has not acknowledged that
    uint64_t waiting_chunks = 0;  // held, not acknowledged
    // How often a stream went on under a new id, as another agent sends under its own.
    uint64_t stream_conflicts = 0;
    uint64_t spool_bytes = 0;  // on disk
    uint64_t spool_memory_bytes = 0;
    uint64_t spool_limit_bytes = 0;  // of what it may take on disk; in memory where it has no disk
    uint64_t queue_bytes = 0;
    std::string last_error;  // of the connection; empty: none since the last Welcome
    // Why no address is of use until somebody changes something: the collector refuses
    // (NeedsPeople), has no certificate for that host, or speaks something else. Empty: none.
    std::string obstacle;
    std::string refusal;  // that has ended it (ends_when_refused); empty: none
  };

  // Opens the spool and starts the thread. Errors: of the options (InvalidArgument: plain tcp to
  // another host without allow_insecure, tls without credentials), of Spool::Open, of
  // CheckCredentials.
  static absl::StatusOr<std::unique_ptr<Uplink>> Start(Options options);

  // Stops at once; what is not acknowledged stays in the spool on disk.
  virtual ~Uplink() = default;

  // Hands over one whole chunk (bytes of one call of a timeline::ByteSink). Copies and returns: it
  // waits for neither disk nor socket. False where the queue is full: the chunk counts as lost and
  // will be told as a gap. What is no chunk is a bug (CHECK). One thread.
  virtual bool Offer(std::span<const uint8_t> chunk) = 0;
  // Records that the owner knows are lost, before the next chunk. The same thread.
  virtual void OfferLost(const timeline::StreamId& stream, const v1::LostRecords& lost) = 0;

  // Each of these three: PermissionDenied in words where it was refused and that ends it.
  // Waits until the first Welcome. DeadlineExceeded with the last error's words; PermissionDenied
  // at once with Stats::obstacle.
  virtual absl::Status AwaitConnected(std::chrono::milliseconds patience) = 0;
  // Waits until fewer than `bytes` are held in queue and spool; for senders that can wait (replay).
  virtual absl::Status AwaitRoom(uint64_t bytes, std::chrono::milliseconds patience) = 0;
  // Waits until all that was offered is acknowledged, what is lost too. DeadlineExceeded, in words
  // with how much is left and where, otherwise.
  virtual absl::Status Finish(std::chrono::milliseconds patience) = 0;
  // TLS: connects anew with the files as they are now. Any thread.
  virtual void ReloadCredentials() = 0;
  virtual Stats stats() const = 0;  // any thread

 protected:
  Uplink() = default;
};

}  // namespace vcpulse::stream

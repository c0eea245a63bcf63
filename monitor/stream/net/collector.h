#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "monitor/stream/disk/retention.h"
#include "monitor/stream/disk/stream_store.h"
#include "monitor/stream/net/admission.h"
#include "monitor/stream/net/credentials.h"
#include "monitor/stream/protocol/address.h"
#include "monitor/stream/protocol/collector_session.h"

namespace vcpulse::stream {

// Receives the streams of many agents and keeps them below one directory. Two threads of its own:
// one for all sockets, one that writes and syncs (fdatasync of all files that a round of writes
// touched, then the acknowledgements). One collector per directory.
class Collector {
 public:
  struct Options {
    std::vector<Address> listen;
    std::string directory;
    Files* files = nullptr;                      // null: KernelFiles()
    CredentialFiles credentials;                 // needed where an address is tls
    bool allow_insecure = false;                 // plain tcp that other machines can reach
    AgentIdsOfUsers allowed_users;               // unix: beside root and the own user
    std::vector<std::string> allowed_followers;  // agent ids that may follow agents but their own
    SessionLimits limits;
    size_t max_connections = 4096;
    uint64_t memory_bytes = 256u << 20;  // for all that is buffered; it allows fewer connections
    // That the process may open; 0: no limit. Fewer of them allow fewer connections: each takes one
    // for itself and one for its stream's file.
    uint64_t descriptors = 0;
    StreamStore::Options store;
    Retention retention;
    bool sync = true;                 // false, for benchmarks alone: acknowledges what is written
    Clock realtime = RealtimeNow_ns;  // for names, rotation and retention
    std::string tool_version;
    std::function<void(const std::string&)> say;  // one line for people; from any of its threads
  };

  struct AgentStats {
    std::string agent_id;
    std::string host_name;
    uint64_t connections = 0;  // open now
    uint64_t streams = 0;      // seen since the start
    uint64_t chunks = 0;       // durable
    uint64_t bytes = 0;        // durable
    uint64_t duplicates = 0;
    uint64_t gaps = 0;  // LostRecords received
    uint64_t lost_records = 0;
    uint64_t errors = 0;  // connections that ended in an error
    // From the end of the last durable chunk, by the agent's own clock, until it was durable;
    // nothing before the first one.
    std::optional<int64_t> lag_ns;
    std::optional<int64_t> last_chunk_realtime_ns;  // when it became durable, the collector's clock
  };
  struct Stats {
    uint64_t connections = 0;  // open now
    uint64_t accepted = 0;
    uint64_t refused = 0;        // turned away: too many, not permitted, no Hello
    uint64_t malformed = 0;      // ended by what is no frame
    uint64_t commits = 0;        // rounds of write and sync
    uint64_t pending_bytes = 0;  // memory of what was received and is not yet durable
    uint64_t followers = 0;
    // Why what is received does not reach the disk, of all streams or of some; empty: it does.
    std::string storage_error;
    std::vector<AgentStats> agents;  // by id
  };

  // Listens, and begins. Errors: of the options, of the addresses (naming them), of the directory
  // (not writable, another collector uses it).
  static absl::StatusOr<std::unique_ptr<Collector>> Start(Options options);

  // Drains as Stop does.
  virtual ~Collector() = default;

  // Where it listens, with the ports that were taken for 0.
  virtual std::vector<Address> addresses() const = 0;
  // Takes no more, writes and acknowledges what was received, tells the peers, ends. Waits for
  // the disk `patience` at most. True where nothing waits any more: it is written, or the disk has
  // refused it. Else a write may hang, and the destructor waits until it is over: a process that
  // wants to end does so without it.
  virtual bool Stop(std::chrono::milliseconds patience) = 0;
  // Takes the files as they are now for connections to come; where they are of no use, the old ones
  // stay and the error says why. Any thread.
  virtual absl::Status ReloadCredentials() = 0;
  virtual Stats stats() const = 0;  // any thread

 protected:
  Collector() = default;
};

}  // namespace vcpulse::stream

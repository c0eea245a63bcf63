#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/clock.h"
#include "monitor/stream/disk/retention.h"
#include "monitor/stream/disk/stream_folders.h"
#include "monitor/stream/disk/stream_store.h"
#include "monitor/stream/net/fair_queue.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::stream {

// The collector's writing thread. In rounds, it writes of each agent what waits, in order and up to
// a bound, syncs each file that was touched once (group commit), and reports. A stream is written
// for one connection at a time: the one that opened it last. Any thread, but for the constructor
// and destructor.
class Committer {
 public:
  using ConnectionId = uint64_t;
  using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

  // What has become of a connection's stream.
  struct Progress {
    ConnectionId connection = 0;
    StreamKey stream;
    bool opened = false;   // the answer to Open
    uint64_t durable = 0;  // records up to it are synced
    absl::Status error;    // else: nothing more is written for this connection
    struct Chunk {
      uint64_t last_sequence = 0;
      int64_t last_mono_ns = 0;
      uint64_t lost_records = 0;  // more than 0: it holds none, and tells of so many that are lost
      Bytes bytes;
    };
    std::vector<Chunk> chunks;   // that have become durable, in order
    uint64_t settled_bytes = 0;  // BytesOf what is done, however it ended
    bool closed = false;         // the answer to Close: the last of this connection
    std::string notice;          // what opening mended
  };

  struct Options {
    Files* files = nullptr;
    std::string directory;
    StreamStore::Options store;
    Retention retention;
    bool sync = true;
    size_t most_idle = 512;  // streams without a connection whose file stays open for a while
    Clock realtime = RealtimeNow_ns;
    // As the streams of a round are done; on the committer's thread.
    std::function<void(std::vector<Progress>)> report;
    std::function<void(const std::string&)> say;
  };

  // About the memory that a job takes whose chunk has so many bytes.
  static constexpr uint64_t BytesOf(size_t chunk) { return 512 + chunk; }

  explicit Committer(Options options);
  // Writes what waits, then ends.
  ~Committer();
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;

  // What its agent says of a stream.
  struct Told {
    uint64_t first_held = 1;                     // it can send records from here on
    std::optional<int64_t> start_realtime_ns{};  // when the stream began, since 1970
  };
  // The connection is the stream's from now on.
  void Open(ConnectionId connection, const StreamKey& stream, const Told& told);
  void Write(ConnectionId connection, const StreamKey& stream, const timeline::ChunkHeader& header,
             Bytes chunk);
  void WriteLost(ConnectionId connection, const StreamKey& stream, const v1::LostRecords& lost);
  // The connection is gone; where it still is the stream's, the files are closed.
  void Close(ConnectionId connection, const StreamKey& stream);

  // Whether what is received reaches the disk. Any thread.
  struct Health {
    int64_t waits_ns = 0;         // how long the oldest of what waits has waited
    std::string directory_error;  // why nothing is written at all; empty: it is
  };
  Health health() const;

  // What waits is not written any more.
  void Abandon();
  // Waits until nothing waits, at most so long. True where that came about.
  bool Drain(std::chrono::milliseconds patience);

 private:
  struct Job {
    enum class Kind { kOpen, kWrite, kWriteLost, kClose };
    Kind kind = Kind::kOpen;
    ConnectionId connection = 0;
    int64_t put_ns = 0;
    StreamKey stream{};
    Told told{};  // of kOpen
    timeline::ChunkHeader header{};
    Bytes chunk{};
    v1::LostRecords lost{};
  };
  struct Stream {
    std::unique_ptr<StreamStore> store;
    ConnectionId connection = 0;
    // Since the connection opened it. Why is the report's alone, which another thread reads.
    bool has_failed = false;
    std::optional<int64_t> idle_since_ns;  // no connection has it
  };
  // Of one round, by connection.
  using Round = std::map<ConnectionId, Progress>;

  // What a job costs in its agent's part of a round, of kRoundCost.
  static uint64_t CostOf(const Job& job, const Job* before);
  void Put(Job job);
  // Until a round has something to take, it ends, or it is time to look around.
  void WaitForRound(std::unique_lock<std::mutex>& lock);
  void Run();
  void Commit(const std::list<Job>& jobs);
  void Do(const Job& job, Round& round);
  absl::StatusOr<std::unique_ptr<StreamStore>> OpenStore(const Job& job);
  void DoOpen(const Job& job);
  void Report(Progress progress);
  void DoWrite(const Job& job, Round& round);
  // Makes what the round wrote durable, one stream after the other, and reports it.
  void Sync(Round& round);
  void SyncStreamOf(ConnectionId connection, Progress& progress);
  // Closes the files of streams that nobody has sent for a while, or that are too many.
  void CloseIdle();
  // What is due by now, with no round in the way.
  void LookAround();
  // Notes where the directory is not the one that it was.
  void CheckDirectory();
  void Retain();
  bool IsGone(ConnectionId connection);

  Options options_;
  // Of the committer's thread alone.
  StreamFolders folders_;
  std::map<StreamKey, Stream> streams_;
  std::optional<std::pair<uint64_t, uint64_t>> directory_identity_;
  Retainer retainer_;
  int64_t looked_ns_ = 0;
  int64_t retained_ns_ = 0;
  std::atomic<bool> abandoned_ = false;
  bool has_new_idle_ = false;                      // since they were looked at
  std::map<std::string, int64_t> round_times_ns_;  // what each agent's part of this round took

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  FairQueue<Job> jobs_;          // of each agent
  std::set<ConnectionId> gone_;  // whose Close waits
  std::string directory_error_;
  std::optional<int64_t> round_put_ns_;  // of the oldest job of the round that is done now
  bool ends_ = false;
  bool drains_ = false;  // nobody rests any more
  std::thread thread_;
};

}  // namespace vcpulse::stream

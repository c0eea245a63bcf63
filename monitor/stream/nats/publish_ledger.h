#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "monitor/stream/nats/broker_ack.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// What of an agent's spool was published, what the broker has acknowledged, and what may leave the
// spool. Pure: time is given to it. One thread.
//
// The broker acknowledges a chunk when a quorum of its servers has it, and servers write to their
// disks later (NATS: each two minutes by default): a power cut of all of them at once loses
// acknowledged chunks. So a chunk stays in the spool for a margin of time after its
// acknowledgement, and until a proof after that: the acknowledged chunk of the stream that the
// broker took last is published once more under its old id. A broker that knows the id has lost
// nothing that it took before, as its stream is a log; else all chunks that are held are published
// again, and so they are where it is not known what became of that message. After each interruption
// a proof is due too.
class PublishLedger {
 public:
  struct Options {
    int64_t margin_ns = 150'000'000'000;
    int64_t ack_deadline_ns = 10'000'000'000;
    size_t most_under_way = 256;
    size_t most_bytes_under_way = 4u << 20;
  };
  using Token = uint64_t;  // of one message that was published

  explicit PublishLedger(const Options& options) : options_(options) {}

  // The sequence at which the stream goes on: of a chunk that is to be published (again), or what
  // comes behind all that was. A stream that was not known begins at `begin`.
  uint64_t NextToPublish(const timeline::StreamId& stream, uint64_t begin);
  // Whether one more message may be under way: the bytes stay within the bound, but one may always
  // be.
  bool MayPublish(size_t bytes) const;
  // What lies at NextToPublish.
  struct Item {
    uint64_t first = 0;  // record
    uint64_t last = 0;
    size_t bytes = 0;
    bool is_loss = false;  // no chunk of the spool: it tells that these records are lost
  };
  // It is published now.
  Token Published(const timeline::StreamId& stream, const Item& item, int64_t now_ns);

  // The broker has the message. Of a token that is not under way (any more) nothing comes. True
  // where it had not acknowledged it before.
  bool Acknowledged(Token token, const BrokerAck& ack, int64_t now_ns);
  // It does not: it is published again.
  void Refused(Token token);
  // The connection was lost, or acknowledgements have not come: whatever is under way is published
  // again, after the proof that what was acknowledged is still there.
  void Interrupted();
  // The oldest message has been under way for too long.
  bool IsOverdue(int64_t now_ns) const;

  // Records up to which the spool may let go of each stream: acknowledged, and the margin is over.
  // `early`: the margin need not be over, nor a proof be there; for a spool that would else drop
  // chunks. Each is given once.
  std::vector<std::pair<timeline::StreamId, uint64_t>> TakeReleased(int64_t now_ns,
                                                                    bool early = false);
  // The spool holds nothing of it any more.
  void Forget(const timeline::StreamId& stream);

  size_t under_way() const { return under_way_.size(); }
  // Acknowledged, and in the spool for the margin alone: chunks, and records that are lost.
  uint64_t acknowledged_chunks() const { return acknowledged_chunks_; }
  uint64_t acknowledged_lost_records() const { return acknowledged_lost_records_; }

 private:
  static constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::min() / 2;
  static constexpr int64_t kProofsPerMargin = 5;

  enum class State { kWaiting, kUnderWay, kAcknowledged };
  struct Entry {
    Item item;
    State state = State::kWaiting;
    int64_t acknowledged_ns = 0;
    uint64_t broker_sequence = 0;  // where the broker has it

    uint64_t first() const { return item.first; }
  };
  struct Stream {
    uint64_t begin = 1;          // records before it are released
    std::deque<Entry> entries;   // contiguous, from `begin` on
    std::set<uint64_t> waiting;  // the first records of those that wait
    // The acknowledged one that the broker took last has to be published again, or is: its first
    // record.
    bool must_prove = false;
    std::optional<uint64_t> proof;
    int64_t proof_ns = kNever_ns;   // it was published last
    int64_t proven_ns = kNever_ns;  // likewise, of those that were known
  };
  struct UnderWay {
    timeline::StreamId stream{};
    uint64_t first = 0;
    size_t bytes = 0;
    int64_t since_ns = 0;
  };

  Entry* Find(const timeline::StreamId& stream, uint64_t first);
  void SetState(Stream& stream, Entry& entry, State state);
  // Takes the entries from `from` on, and behind it up to the record `last`, away.
  void Drop(Stream& stream, std::deque<Entry>::iterator from, uint64_t last);

  const Options options_;
  std::map<timeline::StreamId, Stream> streams_;
  std::map<Token, UnderWay> under_way_;
  size_t bytes_under_way_ = 0;
  uint64_t highest_sequence_ = 0;  // of the broker, that was acknowledged
  uint64_t acknowledged_chunks_ = 0;
  uint64_t acknowledged_lost_records_ = 0;
  Token next_token_ = 1;
};

}  // namespace vcpulse::stream

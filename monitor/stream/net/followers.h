#pragma once

// Of the collector: those who follow agents. Only .cc files of this module include this.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/stream/net/committer.h"
#include "monitor/stream/net/memory.h"
#include "monitor/stream/net/peer.h"

namespace vcpulse::stream {

// One thread, that of the io_context, but for count().
class Followers {
 public:
  Followers(boost::asio::io_context& context, MemoryShares shares,
            std::shared_ptr<Buffered> buffered)
      : context_(context), shares_(shares), buffered_(std::move(buffered)) {}

  // Follows the agent of its Hello, or all.
  void Add(std::shared_ptr<Peer> peer);
  // Nothing where it is none.
  void Remove(const Peer& peer);

  // Sends chunks that have become durable to those who follow this agent. Returns about how much of
  // the thread's time that takes, now and later, ns.
  int64_t Forward(const v1::Hello& from, const std::vector<Committer::Progress::Chunk>& chunks);

  // Those that have not taken enough of what was sent to them so far.
  std::vector<std::shared_ptr<Peer>> Slow() const;

  // Any thread.
  uint64_t count() const { return count_; }

 private:
  struct Follower {
    std::shared_ptr<Peer> peer;
    // The streams (ids) that it was told of, with whose they are.
    std::map<std::string, std::string> told;
  };

  // One at a time: acknowledgements that come meanwhile do not wait for all of them.
  void FlushNext();
  // The frames of chunks, small ones together.
  std::vector<SharedFrames> FramesOf(const std::vector<Committer::Progress::Chunk>& chunks) const;
  SharedFrames Share(std::vector<uint8_t> frames) const;

  boost::asio::io_context& context_;
  const MemoryShares shares_;
  const std::shared_ptr<Buffered> buffered_;
  std::map<uint64_t, Follower> followers_;      // by the peer's id
  std::deque<std::shared_ptr<Peer>> to_flush_;  // each once
  std::atomic<uint64_t> count_ = 0;
};

}  // namespace vcpulse::stream

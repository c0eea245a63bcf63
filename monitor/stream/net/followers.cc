#include "monitor/stream/net/followers.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace vcpulse::stream {
namespace {

// What a follower may leave untaken, beside what becomes durable in one round.
constexpr size_t kMostBehind = 16 << 20;

}  // namespace

void Followers::Add(std::shared_ptr<Peer> peer) {
  const uint64_t id = peer->id();
  followers_[id].peer = std::move(peer);
  count_ = followers_.size();
}

void Followers::Remove(const Peer& peer) {
  followers_.erase(peer.id());
  count_ = followers_.size();
}

void Followers::Forward(const v1::Hello& from,
                        const std::vector<Committer::Progress::Chunk>& chunks) {
  if (chunks.empty()) return;
  for (auto& [id, follower] : followers_) {
    const std::shared_ptr<Peer>& peer = follower.peer;
    const std::string& wanted = peer->hello->follow_agent_id();
    if (!wanted.empty() && wanted != from.agent_id()) continue;
    std::string& owner = follower.told[from.stream_id()];
    if (owner != from.agent_id()) {
      owner = from.agent_id();
      v1::StreamInfo info;
      info.set_stream_id(from.stream_id());
      info.set_agent_id(from.agent_id());
      info.set_host_name(from.host_name());
      peer->session().SendStreamInfo(info);
    }
    for (const auto& chunk : chunks) peer->session().SendChunk(*chunk.bytes);
    // Flushed later: one that has fallen behind is removed.
    boost::asio::post(context_, [peer] { peer->Flush(); });
  }
}

std::vector<std::shared_ptr<Peer>> Followers::Slow() const {
  std::vector<std::shared_ptr<Peer>> slow;
  for (const auto& [id, follower] : followers_) {
    if (follower.peer->session().output().size() > kMostBehind) slow.push_back(follower.peer);
  }
  return slow;
}

}  // namespace vcpulse::stream

#include "monitor/stream/net/followers.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "monitor/stream/protocol/frame.h"

namespace vcpulse::stream {
namespace {

// Streams of which the follower has the StreamInfo; beyond this limit it is sent again.
constexpr size_t kMostTold = 4096;
// What shared frames take beside their bytes: the vector, the count of its users, malloc.
constexpr uint64_t kShared = 128;
// Small frames are sent so many bytes at a time: each follower costs a system call.
constexpr size_t kTogether = 64 << 10;

// About what the system call takes: a few microseconds, and a copy at 2 GB/s.
int64_t SendTime_ns(const std::vector<uint8_t>& frames) {
  return 5'000 + static_cast<int64_t>(frames.size() / 2);
}

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

int64_t Followers::Forward(const v1::Hello& from,
                           const std::vector<Committer::Progress::Chunk>& chunks) {
  if (chunks.empty() || followers_.empty()) return 0;
  int64_t takes_ns = 0;
  std::vector<SharedFrames> frames;  // made for the first who wants them
  for (auto& [id, follower] : followers_) {
    const std::shared_ptr<Peer>& peer = follower.peer;
    const std::string& wanted = peer->hello->follow_agent_id();
    if (!wanted.empty() && wanted != from.agent_id()) continue;
    auto& told = follower.told;
    if (told.size() >= kMostTold && !told.contains(from.stream_id())) told.clear();
    std::string& owner = told[from.stream_id()];
    if (owner != from.agent_id()) {
      owner = from.agent_id();
      v1::StreamInfo info;
      info.set_stream_id(from.stream_id());
      info.set_agent_id(from.agent_id());
      info.set_host_name(from.host_name());
      peer->session().SendStreamInfo(info);
    }
    if (frames.empty()) frames = FramesOf(chunks);
    for (const SharedFrames& together : frames) {
      takes_ns += SendTime_ns(*together);
      peer->Queue(together);
    }
    // Flushed later: one that has fallen behind is removed.
    const bool is_first = to_flush_.empty();
    if (std::ranges::find(to_flush_, peer) == to_flush_.end()) to_flush_.push_back(peer);
    if (is_first) boost::asio::post(context_, [this] { FlushNext(); });
  }
  return takes_ns;
}

void Followers::FlushNext() {
  const std::shared_ptr<Peer> peer = std::move(to_flush_.front());
  to_flush_.pop_front();
  peer->Flush();
  if (!to_flush_.empty()) boost::asio::post(context_, [this] { FlushNext(); });
}

std::vector<SharedFrames> Followers::FramesOf(
    const std::vector<Committer::Progress::Chunk>& chunks) const {
  std::vector<SharedFrames> frames;
  std::vector<uint8_t> together;
  for (const auto& chunk : chunks) {
    AppendFrame(FrameType::kChunk, *chunk.bytes, together);
    if (together.size() < kTogether && &chunk != &chunks.back()) continue;
    frames.push_back(Share(std::exchange(together, {})));
  }
  return frames;
}

SharedFrames Followers::Share(std::vector<uint8_t> frames) const {
  const uint64_t bytes = kShared + frames.capacity();
  buffered_->frames += bytes;
  return {new const std::vector<uint8_t>(std::move(frames)),
          [buffered = buffered_, bytes](const std::vector<uint8_t>* of_all) {
            buffered->frames -= bytes;
            delete of_all;
          }};
}

std::vector<std::shared_ptr<Peer>> Followers::Slow() const {
  std::vector<std::shared_ptr<Peer>> slow;
  std::shared_ptr<Peer> slowest;
  for (const auto& [id, follower] : followers_) {
    const std::shared_ptr<Peer>& peer = follower.peer;
    if (peer->queued_bytes() > shares_.behind()) slow.push_back(peer);
    if (!slowest || peer->queued_bytes() > slowest->queued_bytes()) slowest = peer;
  }
  // Each follows somebody else: none is that slow, and together they hold too much.
  if (slow.empty() && slowest && buffered_->frames > shares_.frames()) slow.push_back(slowest);
  return slow;
}

}  // namespace vcpulse::stream

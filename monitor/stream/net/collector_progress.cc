// The collector loop's answers to what the committer has made durable.
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "monitor/stream/net/collector_loop.h"

namespace vcpulse::stream {

void CollectorLoop::TakeReport(std::vector<Committer::Progress> report) {
  boost::asio::post(context_, [this, report = std::move(report)] {
    {
      const std::lock_guard lock(mutex_);
      ++totals_.commits;
    }
    const bool was_full = !pending_.HasRoom();
    // Acknowledged first: what followers are sent takes a while where they are many.
    for (const Committer::Progress& progress : report) TakeProgress(progress);
    for (const Committer::Progress& progress : report) Forward(progress);
    if (was_full) ReadOn();
  });
}

void CollectorLoop::TakeProgress(const Committer::Progress& progress) {
  const bool has_too_many = absl::IsOutOfRange(progress.error);
  if (!has_too_many && (!progress.error.ok() || !progress.chunks.empty())) {
    NoteStorage(progress.stream, progress.error);
  }
  if (!progress.notice.empty()) log_.Say(progress.notice);
  pending_.Settle(progress.stream.agent_folder, progress.settled_bytes);
  const auto found = peers_.find(progress.connection);
  const bool has_gone = found == peers_.end();
  if (const v1::Hello* const from = HelloOf(progress.connection)) {
    agents_.Durable(from->agent_id(), progress,
                    has_gone ? std::nullopt : found->second->peer_clock_offset_ns);
  }
  if (has_gone) return;
  const std::shared_ptr<Peer> peer = found->second;
  peer->pending_bytes -= progress.settled_bytes;
  if (progress.opened && progress.error.ok()) {
    peer->session().Welcome(progress.durable, options_.tool_version, host_name_);
  } else if (!progress.opened && progress.durable > 0) {
    peer->session().Ack(progress.durable);
  }
  if (has_too_many) {
    static_cast<void>(
        RefuseTo(*peer, v1::Error::CODE_NOT_PERMITTED, std::string(progress.error.message())));
    return;
  }
  if (!progress.error.ok()) {
    SayOf(*peer, "storage",
          absl::StrCat("agent '", peer->hello->agent_id(),
                       "': cannot store its stream: ", progress.error.message()));
    peer->Refuse(v1::Error::CODE_STORAGE,
                 absl::StrCat("the collector cannot store: ", progress.error.message()));
    return Remove(*peer, true);
  }
  peer->Flush();
  peer->ReadOn();
}

void CollectorLoop::Forward(const Committer::Progress& progress) {
  const v1::Hello* const from = HelloOf(progress.connection);
  if (from == nullptr) return;
  CloseSlowFollowers();
  const int64_t took_ns = followers_.Forward(*from, progress.chunks);
  if (took_ns > 0) times_.Take(from->agent_id(), took_ns, MonotonicNow_ns());
  if (progress.closed) departed_.erase(progress.connection);
}

const v1::Hello* CollectorLoop::HelloOf(Id connection) const {
  if (const auto peer = peers_.find(connection); peer != peers_.end()) {
    return &*peer->second->hello;
  }
  const auto departed = departed_.find(connection);
  return departed == departed_.end() ? nullptr : &departed->second;
}

void CollectorLoop::NoteStorage(const StreamKey& stream, const absl::Status& status) {
  const int64_t now_ns = MonotonicNow_ns();
  switch (failures_.Note(stream, status, now_ns)) {
    case StorageFailures::Change::kNone:
      break;
    case StorageFailures::Change::kNoneLeft:
      log_.Say("writing works again");
      break;
    case StorageFailures::Change::kFirst:
      log_.SayOnce("storage",
                   absl::StrCat("not everything is acknowledged now: ", status.message(),
                                "; agents keep what they have, and send it again"),
                   now_ns);
  }
}

void CollectorLoop::CloseSlowFollowers() {
  for (const auto& follower : followers_.Slow()) {
    follower->session().output().clear();
    static_cast<void>(RefuseTo(*follower, v1::Error::CODE_TIMEOUT,
                               "this follower takes too little of what is sent to it"));
  }
}

}  // namespace vcpulse::stream

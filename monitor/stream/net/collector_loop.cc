#include "monitor/stream/net/collector_loop.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/stream/net/admission.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/timeline/entry.h"

namespace vcpulse::stream {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kCollectorTick{250};
// Of one agent id, of all followers, and of those that have not said hello.
constexpr size_t kMostOfAgent = 64;
constexpr size_t kMostFollowers = 256;
constexpr size_t kMostStrangers = 256;
// Between looks at the dates of certificates.
constexpr int64_t kRecheck_ns = 5 * kNsPerSecond;
// What waits for the disk for longer is not being stored.
constexpr int64_t kDiskHangs_ns = 10 * kNsPerSecond;
// Connections whose last words may still be on their way: beyond it the oldest are closed.
constexpr size_t kMostLingering = 256;

StreamKey StreamOf(const v1::Hello& hello) {
  StreamKey key{.agent_folder = FolderOf(hello.agent_id())};
  std::copy_n(hello.stream_id().begin(), std::min(key.stream.size(), hello.stream_id().size()),
              key.stream.begin());
  return key;
}

}  // namespace

CollectorLoop::CollectorLoop(asio::io_context& context, const Collector::Options& options)
    : context_(context),
      options_(options),
      host_name_(OwnHostName()),
      ticks_(context),
      shares_(options.memory_bytes),
      followers_(context, shares_, buffered_),
      log_(options.say),
      pending_(shares_.pending()) {}

CollectorLoop::~CollectorLoop() = default;

absl::Status CollectorLoop::Listen() {
  for (const Address& address : options_.listen) {
    auto listener = Listener::Listen(
        context_, {.address = address,
                   .others_may_connect = !options_.allowed_users.empty(),
                   .tls =
                       [this] {
                         const std::lock_guard lock(mutex_);
                         return tls_;
                       },
                   .arrived = [this](Arrival arrival) { Take(std::move(arrival)); }});
    if (!listener.ok()) return listener.status();
    listeners_.push_back(*std::move(listener));
  }
  return absl::OkStatus();
}

std::vector<Address> CollectorLoop::addresses() const {
  std::vector<Address> addresses;
  addresses.reserve(listeners_.size());
  for (const auto& listener : listeners_) addresses.push_back(listener->address());
  return addresses;
}

void CollectorLoop::StartTicking() {
  ticks_.expires_after(kCollectorTick);
  ticks_.async_wait([this](const ErrorCode& error) {
    if (error) return;
    Tick();
    StartTicking();
  });
}

void CollectorLoop::Tick() {
  const v1::ClockSnapshot clock = timeline::TakeClockSnapshot();
  const int64_t now_ns = MonotonicNow_ns();
  const auto peers = peers_;  // one that fails leaves the map
  for (const auto& [id, peer] : peers) peer->Tick(clock, now_ns);
  std::erase_if(lingering_, [](const auto& peer) { return peer.expired(); });
  failures_.ForgetOld(now_ns);
  times_.ForgetInactive(now_ns);
  log_.Tick(now_ns);
  CloseSlowFollowers();
  if (now_ns - rechecked_ns_ > kRecheck_ns) {
    rechecked_ns_ = now_ns;
    EndExpired();
  }
  ReadOn();
}

void CollectorLoop::Take(Arrival arrival) {
  {
    const std::lock_guard lock(mutex_);
    ++totals_.accepted;
  }
  const bool is_full = peers_.size() >= options_.max_connections || Strangers() >= kMostStrangers;
  const bool has_room = !is_full || MakeRoom();
  const std::optional<uid_t> uid = arrival.uid;
  auto peer = std::make_shared<Peer>(context_, next_id_++, std::move(arrival), options_.limits,
                                     *this, buffered_);
  peers_[peer->id()] = peer;
  connections_ = peers_.size();
  peer->Start();
  if (peer->ended()) return;
  if (!has_room) {
    static_cast<void>(RefuseTo(*peer, v1::Error::CODE_BUSY,
                               absl::StrCat("the collector has ", options_.max_connections,
                                            " connections, and takes no more")));
  } else if (uid && !IdentityOfUser(*uid, options_.allowed_users)) {
    static_cast<void>(
        RefuseTo(*peer, v1::Error::CODE_NOT_PERMITTED,
                 absl::StrCat("user ", *uid, " may not connect here (collect --allow-uid ", *uid,
                              "=AGENT-ID)")));
  }
}

size_t CollectorLoop::Strangers() const {
  return static_cast<size_t>(std::ranges::count_if(
      peers_, [](const auto& entry) { return !entry.second->hello.has_value(); }));
}

std::optional<std::string> CollectorLoop::OneTooMany(const Peer& peer,
                                                     const v1::Hello& hello) const {
  const auto of_agent = std::ranges::count_if(peers_, [&](const auto& entry) {
    const Peer& other = *entry.second;
    return &other != &peer && other.hello && other.hello->agent_id() == hello.agent_id();
  });
  if (static_cast<size_t>(of_agent) >= kMostOfAgent) {
    return absl::StrCat("agent '", hello.agent_id(), "' has ", of_agent,
                        " connections, the most that one may have");
  }
  if (hello.role() == v1::Hello::ROLE_FOLLOWER && followers_.count() >= kMostFollowers) {
    return absl::StrCat("the collector has ", kMostFollowers, " followers, and takes no more");
  }
  return std::nullopt;
}

bool CollectorLoop::MakeRoom() {
  const auto found = std::ranges::find_if(
      peers_, [](const auto& entry) { return !entry.second->hello.has_value(); });
  if (found == peers_.end()) return false;
  const std::shared_ptr<Peer> oldest = found->second;
  static_cast<void>(
      RefuseTo(*oldest, v1::Error::CODE_BUSY,
               "another connection needs the room, and this one has not said who it is"));
  return true;
}

absl::Status CollectorLoop::RefuseTo(Peer& peer, v1::Error::Code code, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    ++totals_.refused;
  }
  SayOf(peer, absl::StrCat("refused ", static_cast<int>(code)),
        absl::StrCat("refused ", peer.from(), ": ", reason));
  peer.Refuse(code, reason);
  Remove(peer, true);
  return absl::FailedPreconditionError(reason);
}

absl::Status CollectorLoop::Hello(Peer& peer, const v1::Hello& hello) {
  if (absl::Status status = CheckName(IdentityOf(peer), hello.agent_id()); !status.ok()) {
    return RefuseTo(peer, v1::Error::CODE_NOT_PERMITTED, std::string(status.message()));
  }
  if (const auto why = OneTooMany(peer, hello)) {
    return RefuseTo(peer, v1::Error::CODE_BUSY, *why);
  }
  return hello.role() == v1::Hello::ROLE_FOLLOWER ? HelloOfFollower(peer, hello)
                                                  : HelloOfAgent(peer, hello);
}

Identity CollectorLoop::IdentityOf(const Peer& peer) const {
  const Arrival& arrival = peer.arrival();
  if (auto names = arrival.channel->PeerNames()) {
    return {.proof = Identity::Proof::kCertificate, .names = *std::move(names)};
  }
  if (!arrival.uid) return {};
  // One that may not connect has been turned away.
  return IdentityOfUser(*arrival.uid, options_.allowed_users)
      .value_or(Identity{.proof = Identity::Proof::kUser, .uid = *arrival.uid});
}

absl::Status CollectorLoop::HelloOfAgent(Peer& peer, const v1::Hello& hello) {
  const StreamKey stream = StreamOf(hello);
  // The same agent anew, before its old connection was seen to be dead.
  if (const auto sender = senders_.find(stream); sender != senders_.end()) {
    const std::shared_ptr<Peer> old = peers_.at(sender->second);
    if (old->hello->boot_id() == hello.boot_id()) {
      old->Refuse(v1::Error::CODE_TAKEN_OVER, "this stream has connected anew");
      Remove(*old, false);
    }
  }
  if (const auto other = agents_.Arrived(hello)) {
    return RefuseTo(peer, v1::Error::CODE_AGENT_ID_IN_USE,
                    absl::StrCat("agent id '", hello.agent_id(), "' is in use by host '", *other,
                                 "': give each agent its own --agent-id"));
  }
  peer.stream = stream;
  senders_[stream] = peer.id();
  committer_->Open(
      peer.id(), stream,
      {.first_held = hello.first_sequence(),
       .start_realtime_ns = hello.has_start_realtime_ns() ? std::optional(hello.start_realtime_ns())
                                                          : std::nullopt});
  return absl::OkStatus();
}

absl::Status CollectorLoop::HelloOfFollower(Peer& peer, const v1::Hello& hello) {
  const auto whom = WhomToFollow(IdentityOf(peer), hello.agent_id(), hello.follow_agent_id(),
                                 options_.allowed_followers);
  if (!whom.ok()) {
    return RefuseTo(peer, v1::Error::CODE_NOT_PERMITTED, std::string(whom.status().message()));
  }
  peer.hello->set_follow_agent_id(*whom);
  peer.is_follower = true;
  followers_.Add(peers_.at(peer.id()));
  peer.session().Welcome(0, options_.tool_version, host_name_);
  return absl::OkStatus();
}

void CollectorLoop::Hold(Peer& peer, size_t chunk) {
  const uint64_t bytes = Committer::BytesOf(chunk);
  peer.pending_bytes += bytes;
  pending_.Add(peer.stream->agent_folder, bytes);
}

absl::Status CollectorLoop::Chunk(Peer& peer, const timeline::ChunkHeader& header,
                                  std::span<const uint8_t> bytes) {
  Hold(peer, bytes.size());
  committer_->Write(peer.id(), *peer.stream, header,
                    std::make_shared<const std::vector<uint8_t>>(bytes.begin(), bytes.end()));
  return absl::OkStatus();
}

absl::Status CollectorLoop::Gap(Peer& peer, const v1::LostRecords& lost) {
  Hold(peer, 0);
  committer_->WriteLost(peer.id(), *peer.stream, lost);
  return absl::OkStatus();
}

void CollectorLoop::Ended(Peer& peer, const absl::Status& why) {
  if (!why.ok()) {
    {
      const std::lock_guard lock(mutex_);
      if (absl::IsDataLoss(why)) ++totals_.malformed;
      if (!peer.hello) ++totals_.refused;
    }
    const std::string who =
        peer.hello ? absl::StrCat("agent '", peer.hello->agent_id(), "' (", peer.from(), ")")
                   : peer.from();
    SayOf(peer, absl::StrCat("closed ", why.raw_code()),
          absl::StrCat(who, ": connection closed: ", why.message()));
  }
  Remove(peer, !why.ok());
}

void CollectorLoop::Remove(Peer& peer, bool in_error) {
  const auto found = peers_.find(peer.id());
  if (found == peers_.end()) return;
  lingering_.push_back(found->second);
  if (lingering_.size() > kMostLingering) {
    if (const auto oldest = lingering_.front().lock()) oldest->Close();
    lingering_.pop_front();
  }
  followers_.Remove(peer);
  if (peer.stream) {
    agents_.Duplicates(peer.hello->agent_id(), peer.session().duplicates());
    agents_.Left(peer.hello->agent_id(), in_error);
    const auto sender = senders_.find(*peer.stream);
    if (sender != senders_.end() && sender->second == peer.id()) {
      senders_.erase(sender);
      departed_[peer.id()] = *peer.hello;
      committer_->Close(peer.id(), *peer.stream);
    }
  }
  peers_.erase(found);
  connections_ = peers_.size();
}

bool CollectorLoop::MayRead(const Peer& peer) const {
  if (!reads_) return false;
  return peer.stream ? pending_.HasRoomFor(peer.stream->agent_folder) : pending_.HasRoom();
}

int64_t CollectorLoop::NextRead_ns(const Peer& peer, int64_t now_ns) const {
  return peer.hello ? times_.Next_ns(peer.hello->agent_id(), now_ns) : now_ns;
}

void CollectorLoop::Took(const Peer& peer, int64_t time_ns, int64_t now_ns) {
  if (peer.hello) times_.Take(peer.hello->agent_id(), time_ns, now_ns);
}

void CollectorLoop::ReadOn() {
  const auto peers = peers_;  // one that fails leaves the map
  for (const auto& [id, peer] : peers) peer->ReadOn();
}

void CollectorLoop::StopReading() {
  listeners_.clear();
  reads_ = false;
}

void CollectorLoop::Shutdown() {
  ticks_.cancel();
  while (!peers_.empty()) {
    const std::shared_ptr<Peer> peer = peers_.begin()->second;
    peer->Dismiss(v1::Error::CODE_SHUTDOWN, "the collector ends; it may come back");
    Remove(*peer, false);
  }
}

bool CollectorLoop::AnyAlive() const {
  return std::ranges::any_of(lingering_, [](const auto& peer) { return !peer.expired(); });
}

void CollectorLoop::CloseAll() {
  ticks_.cancel();
  for (const auto& weak : lingering_) {
    if (const auto peer = weak.lock()) peer->Close();
  }
  for (const auto& [id, peer] : peers_) peer->Close();
  peers_.clear();
}

void CollectorLoop::SayOf(const Peer& peer, const std::string& what, const std::string& line) {
  const int64_t now_ns = MonotonicNow_ns();
  if (!peer.stream && !peer.is_follower) return log_.SayOfStranger(peer.from(), line, now_ns);
  log_.SayOnce(absl::StrCat(what, " ", peer.hello->agent_id()), line, now_ns);
}

void CollectorLoop::HoldsMore() {
  if (relieves_ || buffered_->connections <= shares_.connections()) return;
  relieves_ = true;
  asio::post(context_, [this] {
    relieves_ = false;
    Relieve();
  });
}

// Whoever holds the most, by agent id, gives its largest connection.
void CollectorLoop::Relieve() {
  while (buffered_->connections > shares_.connections()) {
    std::map<std::string, uint64_t> held;
    for (const auto& [id, peer] : peers_) {
      held[peer->hello ? peer->hello->agent_id() : ""] += peer->memory();
    }
    const auto most = std::ranges::max_element(held, {}, &decltype(held)::value_type::second);
    std::shared_ptr<Peer> largest;
    for (const auto& [id, peer] : peers_) {
      const bool is_of_most = (peer->hello ? peer->hello->agent_id() : "") == most->first;
      if (is_of_most && (!largest || peer->memory() > largest->memory())) largest = peer;
    }
    if (!largest) return;
    static_cast<void>(RefuseTo(*largest, v1::Error::CODE_BUSY,
                               "the collector's memory (--memory) is used up, and this agent's "
                               "connections hold the most of it"));
    largest->DropInput();
  }
}

void CollectorLoop::SetTls(std::shared_ptr<TlsContext> tls) {
  {
    const std::lock_guard lock(mutex_);
    tls_ = tls;
  }
  asio::post(context_, [this, tls = std::move(tls)] { RecheckPeers(*tls); });
}

void CollectorLoop::RecheckPeers(TlsContext& tls) {
  const auto peers = peers_;  // one that is refused leaves the map
  for (const auto& [id, peer] : peers) {
    if (!peer->hello) continue;  // its handshake may not be over
    const absl::Status status = peer->arrival().channel->CheckPeer(tls);
    if (!status.ok()) {
      static_cast<void>(
          RefuseTo(*peer, v1::Error::CODE_NOT_PERMITTED, std::string(status.message())));
    }
  }
}

void CollectorLoop::EndExpired() {
  const auto peers = peers_;
  for (const auto& [id, peer] : peers) {
    if (peer->hello && peer->arrival().channel->IsPeerExpired()) {
      static_cast<void>(RefuseTo(*peer, v1::Error::CODE_NOT_PERMITTED,
                                 "the peer's certificate has expired: have it issued anew"));
    }
  }
}

void CollectorLoop::FillStats(Collector::Stats& stats) const {
  {
    const std::lock_guard lock(mutex_);
    stats = totals_;
    stats.storage_error = failures_.Text();
    const Committer::Health health =
        committer_ == nullptr ? Committer::Health{} : committer_->health();
    if (!health.directory_error.empty()) {
      stats.storage_error = health.directory_error;
    } else if (health.waits_ns > kDiskHangs_ns) {
      stats.storage_error =
          absl::StrCat("the disk has not answered for ", health.waits_ns / kNsPerSecond,
                       " s: nothing is acknowledged meanwhile");
    }
  }
  stats.connections = connections_;
  stats.followers = followers_.count();
  stats.pending_bytes = pending_.total();
  stats.agents = agents_.Stats();
}

}  // namespace vcpulse::stream

#include "monitor/stream/nats/collector.h"

#include <nats/nats.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/shared_store.h"
#include "monitor/stream/disk/stream_folders.h"
#include "monitor/stream/nats/jetstream.h"
#include "monitor/stream/nats/published_chunk.h"
#include "monitor/stream/nats/subject.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/stream/protocol/frame.h"

namespace vcpulse::stream {
namespace {

constexpr int kBatch = 512;  // messages of one round
// From so many files on a round is synced as a whole.
constexpr size_t kManyFiles = 8;
constexpr int64_t kFetchPatience_ms = 250;
constexpr int64_t kMostUnacknowledged = 16'384;  // of all collectors of a consumer
constexpr std::chrono::milliseconds kAgainAfter{1'000};
constexpr int64_t kLookPeriod_ns = 60'000'000'000;
constexpr size_t kMostOpen = 512;         // files
constexpr size_t kMostStreams = 100'000;  // whose sequence numbers are known
// A chunk that its stream's folder does not take is offered again after that; the disk is another
// matter.
constexpr int64_t kOfferAgain_ms = 60'000;
// Written below the collector's folder, and removed, to see whether there is room for chunks again.
constexpr char kRoomFile[] = ".room";
constexpr size_t kRoomBytes = kMaxFrameBytes;

// A message of JetStream, acknowledged or not.
struct DestroyMessage {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using Message = std::unique_ptr<natsMsg, DestroyMessage>;

struct DestroySubscription {
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
};
using Subscription = std::unique_ptr<natsSubscription, DestroySubscription>;

// A chunk that came, and the message in which its bytes lie.
struct Taken : PublishedChunk {
  Message message{};
};

absl::StatusOr<Taken> Examine(Message& message) {
  natsMsg* const raw = message.get();
  auto chunk = ParsePublishedChunk(natsMsg_GetSubject(raw),
                                   {reinterpret_cast<const uint8_t*>(natsMsg_GetData(raw)),
                                    static_cast<size_t>(std::max(natsMsg_GetDataLength(raw), 0))});
  if (!chunk.ok()) return chunk.status();
  return Taken{*std::move(chunk), std::move(message)};
}

StreamKey KeyOf(const Taken& taken) {
  return {.agent_folder = FolderOf(taken.subject.agent_id), .stream = taken.subject.stream};
}

std::optional<int64_t> RealtimeAt(const Taken& taken, int64_t mono_ns) {
  return RealtimeIn(taken.header, taken.bytes.subspan(taken.header.header_bytes), mono_ns);
}

class NatsCollector final : public Collector {
 public:
  NatsCollector(NatsCollectorOptions options, std::unique_ptr<DirectoryLock> lock)
      : options_(std::move(options)),
        files_(*options_.collector.files),
        lock_(std::move(lock)),
        folders_(files_, options_.collector.directory),
        retainer_(files_, options_.collector.directory, options_.collector.retention,
                  options_.collector.realtime(), options_.collector.say) {
    auto file_system = files_.OpenFileSystem(options_.collector.directory);
    if (file_system.ok()) file_system_ = *std::move(file_system);
  }
  ~NatsCollector() override {
    stops_ = true;
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  // Once. Errors: what somebody has to change before it can take anything.
  absl::Status Start();
  NatsCollector(const NatsCollector&) = delete;
  NatsCollector& operator=(const NatsCollector&) = delete;

  std::vector<Address> addresses() const override { return {}; }
  bool Stop(std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    stops_ = true;
    wake_.notify_all();
    return wake_.wait_for(lock, patience, [this] { return has_ended_; });
  }
  absl::Status ReloadCredentials() override {
    reconnects_ = true;
    return absl::OkStatus();
  }
  Stats stats() const override {
    const std::lock_guard lock(mutex_);
    Stats stats = totals_;
    for (const auto& [id, agent] : agents_) stats.agents.push_back(agent);
    return stats;
  }

 private:
  void Run();
  // Connection, consumer and subscription. Errors in words.
  absl::Status Prepare();
  void SayTryingAgain(const absl::Status& status) {
    Say(absl::StrCat(status.message(), "; trying again"));
  }
  void SayRefusals();
  absl::Status Fetch(std::vector<Message>& messages);
  void TakeRound(std::vector<Message> messages);
  absl::StatusOr<bool> Store(const Taken& taken);
  std::set<StreamKey> SyncTouched(absl::Status& trouble);
  void Refuse(const Taken& taken, const absl::Status& why);
  static void GiveBack(const Taken& taken);
  void RestIdle();
  absl::StatusOr<SharedStore*> StoreOf(const Taken& taken);
  AgentStats& AgentOf(const Taken& taken);
  void NoteStored(const Taken& taken, bool is_new);
  void NoteStorage(const absl::Status& status);
  // False while nothing can be stored: then no chunks are asked for, so that other collectors have
  // them. Tries it.
  bool HasRoom();
  void LookAround();
  void Say(const std::string& line) {
    if (line == said_) return;
    said_ = line;
    options_.collector.say(line);
  }
  void Pause() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kAgainAfter, [this] { return stops_.load(); });
  }

  const NatsCollectorOptions options_;
  Files& files_;
  const std::unique_ptr<DirectoryLock> lock_;
  // Of the thread alone.
  StreamFolders folders_;
  JetStream jetstream_;
  Subscription subscription_;
  struct Stream {
    std::unique_ptr<SharedStore> store;
    int64_t used_ns = 0;
  };
  std::map<StreamKey, Stream> streams_;
  std::set<StreamKey> touched_;
  std::unique_ptr<FileSystem> file_system_;  // null: files are synced one by one
  Retainer retainer_;
  int64_t looked_ns_ = 0;
  std::string said_;
  bool is_full_ = false;  // the last round was not stored, and HasRoom has not found room since
  bool said_trouble_ = false;  // of storing

  std::atomic<bool> stops_ = false;
  std::atomic<bool> reconnects_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  bool has_ended_ = false;
  Stats totals_;
  std::map<std::string, AgentStats> agents_;
  std::set<StreamKey> seen_;
  std::string refused_;  // the server's words that were not said yet

  // Below what its threads use.
  std::unique_ptr<NatsConnection> connection_;
  std::thread thread_;
};

absl::Status NatsCollector::Start() {
  const BlockedSignals blocked;  // they are for other threads, those of libnats too
  absl::Status status = Prepare();
  if (absl::IsUnavailable(status)) SayTryingAgain(status);
  if (!status.ok() && !absl::IsUnavailable(status)) return status;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "vcpulse-nats");
  return absl::OkStatus();
}

absl::Status NatsCollector::Prepare() {
  if (reconnects_.exchange(false) || (connection_ != nullptr && connection_->is_closed())) {
    subscription_.reset();
    jetstream_.reset();
    connection_.reset();
  }
  if (connection_ == nullptr) {
    auto connection = ConnectNow(options_.server, [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      refused_ = why;
    });
    if (!connection.ok()) return connection.status();
    connection_ = *std::move(connection);
  }
  if (!connection_->is_connected()) {
    const std::string why = connection_->LastError();
    return absl::UnavailableError(absl::StrCat(options_.address, ": the broker was lost",
                                               why.empty() ? "" : absl::StrCat(": ", why)));
  }
  if (subscription_ != nullptr) return absl::OkStatus();
  if (absl::Status status = CheckJetStream(*connection_, options_.address); !status.ok()) {
    return status;
  }
  auto jetstream = OpenJetStream(*connection_);
  if (!jetstream.ok()) return jetstream.status();
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = options_.consumer.c_str();
  config.AckPolicy = js_AckExplicit;
  config.DeliverPolicy = js_DeliverAll;
  config.AckWait = options_.ack_wait.count();
  config.MaxAckPending = kMostUnacknowledged;
  config.FilterSubject = kAllSubjects;
  jsErrCode code = static_cast<jsErrCode>(0);
  const auto failed = [&](natsStatus status, const std::string& what) {
    return JetStreamError(*connection_, status, code, absl::StrCat(options_.address, ": ", what));
  };
  // Made here rather than by subscribing, as libnats removes at the end what it made.
  natsStatus status =
      js_AddConsumer(nullptr, jetstream->get(), kJetStreamName, &config, nullptr, &code);
  if (status != NATS_OK && code != JSConsumerNameExistErr) {
    return failed(status, absl::StrCat("the consumer ", options_.consumer));
  }
  jsConsumerInfo* info = nullptr;
  status = js_GetConsumerInfo(&info, jetstream->get(), kJetStreamName, options_.consumer.c_str(),
                              nullptr, &code);
  if (status != NATS_OK) return failed(status, absl::StrCat("the consumer ", options_.consumer));
  const bool is_of_use = info->Config != nullptr && info->Config->AckPolicy == js_AckExplicit;
  jsConsumerInfo_Destroy(info);
  if (!is_of_use) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.address, ": the consumer ", options_.consumer,
                     " was made by another program and does not wait for acknowledgements: name "
                     "another one with --consumer"));
  }
  jsSubOptions bind;
  jsSubOptions_Init(&bind);
  bind.Stream = kJetStreamName;
  bind.Consumer = options_.consumer.c_str();
  natsSubscription* subscription = nullptr;
  status = js_PullSubscribe(&subscription, jetstream->get(), kAllSubjects,
                            options_.consumer.c_str(), nullptr, &bind, &code);
  if (status != NATS_OK) return failed(status, "subscribing");
  subscription_.reset(subscription);
  jetstream_ = *std::move(jetstream);
  Say(absl::StrCat("taking chunks from ", options_.address, " as ", options_.consumer));
  return absl::OkStatus();
}

absl::Status NatsCollector::Fetch(std::vector<Message>& messages) {
  natsMsgList list{};
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status =
      natsSubscription_Fetch(&list, subscription_.get(), kBatch, kFetchPatience_ms, &code);
  if (status == NATS_TIMEOUT) {
    SayRefusals();
    return absl::OkStatus();
  }
  if (status != NATS_OK) {
    return absl::UnavailableError(
        absl::StrCat(options_.address, ": no chunks come: ", NatsWords(status)));
  }
  for (int i = 0; i < list.Count; ++i) messages.emplace_back(std::exchange(list.Msgs[i], nullptr));
  natsMsgList_Destroy(&list);
  return absl::OkStatus();
}

// Of chunks that are asked for the server says so beside the answers, of which there is none then.
void NatsCollector::SayRefusals() {
  std::string refused;
  {
    const std::lock_guard lock(mutex_);
    refused.swap(refused_);
  }
  if (!refused.empty()) Say(absl::StrCat(options_.address, ": ", refused));
}

void NatsCollector::Run() {
  while (!stops_) {
    absl::Status status = Prepare();
    std::vector<Message> messages;
    const bool has_room = HasRoom();
    if (status.ok() && has_room) status = Fetch(messages);
    {
      const std::lock_guard lock(mutex_);
      totals_.connections = status.ok() ? 1 : 0;
    }
    if (!status.ok()) {
      SayTryingAgain(status);
      // A connection that was lost comes back by itself; a consumer may be another one by then.
      subscription_.reset();
      jetstream_.reset();
      Pause();
      continue;
    }
    if (!messages.empty()) TakeRound(std::move(messages));
    LookAround();
    if (!has_room) Pause();
  }
  subscription_.reset();
  jetstream_.reset();
  connection_.reset();  // flushes the last acknowledgements
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  wake_.notify_all();
}

void NatsCollector::TakeRound(std::vector<Message> messages) {
  std::vector<Taken> round;
  for (Message& message : messages) {
    auto taken = Examine(message);
    if (taken.ok()) {
      round.push_back(*std::move(taken));
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      ++totals_.malformed;
    }
    Say(absl::StrCat("a message of ", Printable(natsMsg_GetSubject(message.get())),
                     " is no chunk, and is not stored: ", taken.status().message()));
    static_cast<void>(natsMsg_Term(message.get(), nullptr));  // it would come again and again
  }
  std::vector<std::pair<const Taken*, bool>> held;  // and whether it is new
  absl::Status trouble;
  for (const Taken& taken : round) {
    const auto is_new = Store(taken);
    if (is_new.ok()) {
      held.emplace_back(&taken, *is_new);
    } else if (absl::IsResourceExhausted(is_new.status())) {
      trouble = is_new.status();  // the disk is full: all of them will fail
      GiveBack(taken);
    } else {
      Refuse(taken, is_new.status());
    }
  }
  const std::set<StreamKey> failed = SyncTouched(trouble);
  for (const auto& [taken, is_new] : held) {
    if (failed.contains(KeyOf(*taken))) {
      GiveBack(*taken);
      continue;
    }
    NoteStored(*taken, is_new);
    // An acknowledgement that is lost makes the chunk come again, and it is known then.
    static_cast<void>(natsMsg_Ack(taken->message.get(), nullptr));
  }
  NoteStorage(trouble);
  RestIdle();
  if (!trouble.ok()) Pause();
}

// To be handed out again, to another collector at once.
void NatsCollector::GiveBack(const Taken& taken) {
  static_cast<void>(natsMsg_Nak(taken.message.get(), nullptr));
}

// What this stream's folder does not take must not hold up the others.
void NatsCollector::Refuse(const Taken& taken, const absl::Status& why) {
  streams_.erase(KeyOf(taken));  // to be read anew
  touched_.erase(KeyOf(taken));
  {
    const std::lock_guard lock(mutex_);
    ++AgentOf(taken).errors;
  }
  const bool for_good = absl::IsOutOfRange(why);  // an agent that has too many streams
  Say(absl::StrCat("a chunk of ", taken.subject.agent_id, " is not stored: ", why.message(),
                   for_good ? "" : "; it is asked for again in a minute"));
  natsMsg* const message = taken.message.get();
  static_cast<void>(for_good ? natsMsg_Term(message, nullptr)
                             : natsMsg_NakWithDelay(message, kOfferAgain_ms, nullptr));
}

// Those whose chunks are not durable; `trouble` then says why.
std::set<StreamKey> NatsCollector::SyncTouched(absl::Status& trouble) {
  std::set<StreamKey> failed;
  const bool at_once = touched_.size() >= kManyFiles && file_system_ != nullptr;
  const absl::Status of_all = at_once ? file_system_->Sync() : absl::OkStatus();
  for (const StreamKey& key : touched_) {
    SharedStore& store = *streams_.at(key).store;
    if (!of_all.ok()) store.GiveUpUnsynced(of_all);
    absl::Status status = at_once ? store.NoteSynced() : store.Sync();
    if (status.ok()) continue;
    trouble = std::move(status);
    failed.insert(key);
    streams_.erase(key);  // to be read anew
  }
  touched_.clear();
  return failed;
}

// Few files stay open; what is known of streams stays.
void NatsCollector::RestIdle() {
  std::vector<std::pair<int64_t, StreamKey>> open;
  for (const auto& [key, stream] : streams_) {
    if (stream.store->is_open()) open.emplace_back(stream.used_ns, key);
  }
  if (open.size() > kMostOpen) {
    const auto half = open.begin() + static_cast<ptrdiff_t>(open.size() - kMostOpen / 2);
    std::ranges::nth_element(open, half);
    std::for_each(open.begin(), half,
                  [this](const auto& entry) { streams_.at(entry.second).store->Rest(); });
  }
  if (streams_.size() > kMostStreams) streams_.clear();  // they are read anew
}

absl::StatusOr<SharedStore*> NatsCollector::StoreOf(const Taken& taken) {
  const StreamKey key = KeyOf(taken);
  const auto known = streams_.find(key);
  if (known != streams_.end()) {
    known->second.used_ns = MonotonicNow_ns();
    return known->second.store.get();
  }
  const int64_t now_ns = options_.collector.realtime();
  const auto folder = folders_.FolderOf(
      key.agent_folder, key.stream, RealtimeAt(taken, taken.header.first_mono_ns).value_or(now_ns));
  if (!folder.ok()) return folder.status();
  auto opened = SharedStore::Open(files_, *folder, options_.collector.store);
  if (!opened.ok()) return opened.status();
  if (!(*opened)->notice().empty()) options_.collector.say((*opened)->notice());
  Stream& stream = streams_[key];
  stream = {.store = *std::move(opened), .used_ns = MonotonicNow_ns()};
  return stream.store.get();
}

// Whether it is new; it was here before otherwise.
absl::StatusOr<bool> NatsCollector::Store(const Taken& taken) {
  const auto store = StoreOf(taken);
  if (!store.ok()) return store.status();
  if ((*store)->Holds(taken.header, taken.settles_to)) return false;
  absl::Status status =
      (*store)->Append(taken.header, taken.settles_to, taken.bytes, options_.collector.realtime());
  if (!status.ok()) return status;
  touched_.insert(KeyOf(taken));
  return true;
}

// With the mutex held.
Collector::AgentStats& NatsCollector::AgentOf(const Taken& taken) {
  AgentStats& agent = agents_[taken.subject.agent_id];
  agent.agent_id = taken.subject.agent_id;
  return agent;
}

void NatsCollector::NoteStored(const Taken& taken, bool is_new) {
  const std::optional<int64_t> last_ns = RealtimeAt(taken, taken.header.last_mono_ns);
  const std::lock_guard lock(mutex_);
  AgentStats& agent = AgentOf(taken);
  if (!is_new) {
    ++agent.duplicates;
    return;
  }
  if (taken.header.first_sequence > taken.header.last_sequence) {
    ++agent.gaps;
    agent.lost_records += taken.settles_to - taken.header.first_sequence + 1;
    return;
  }
  ++agent.chunks;
  agent.bytes += taken.bytes.size();
  if (seen_.insert(KeyOf(taken)).second) ++agent.streams;
  agent.last_chunk_realtime_ns = options_.collector.realtime();
  if (last_ns) agent.lag_ns = *agent.last_chunk_realtime_ns - *last_ns;
}

void NatsCollector::NoteStorage(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    ++totals_.commits;
    totals_.storage_error = std::string(status.message());
  }
  is_full_ = !status.ok();
  if (is_full_ == said_trouble_) return;
  said_trouble_ = is_full_;
  Say(is_full_ ? absl::StrCat("cannot store: ", status.message(),
                              "; no more chunks are asked for until that works")
               : "writing works again");
}

bool NatsCollector::HasRoom() {
  if (!is_full_) return true;
  const std::string path = absl::StrCat(options_.collector.directory, "/", kRoomFile);
  auto file = files_.OpenToAppend(path, false);
  absl::Status status = file.status();
  if (status.ok()) status = (*file)->Truncate(0);
  if (status.ok()) status = (*file)->Append(std::vector<uint8_t>(kRoomBytes));
  if (status.ok()) status = (*file)->Sync();
  if (file.ok()) status.Update(files_.Remove(path));
  is_full_ = !status.ok();
  return status.ok();
}

void NatsCollector::LookAround() {
  const int64_t now_ns = MonotonicNow_ns();
  if (now_ns - looked_ns_ < kLookPeriod_ns) return;
  looked_ns_ = now_ns;
  std::set<std::string> live;
  for (const auto& [key, stream] : streams_) live.insert(stream.store->directory());
  const bool any =
      retainer_.Apply(options_.collector.realtime(),
                      [&](const std::string& directory) { return live.contains(directory); });
  if (any) {
    folders_.Forget();
    streams_.clear();  // what was removed is not held any more
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collector>> StartNatsCollector(NatsCollectorOptions options) {
  Collector::Options& collector = options.collector;
  if (collector.files == nullptr) collector.files = &KernelFiles();
  if (!collector.say) collector.say = [](const std::string&) {};
  if (absl::Status status = CheckNatsOptions(options.server); !status.ok()) return status;
  if (absl::Status status = collector.files->MakeDirectories(collector.directory); !status.ok()) {
    return status;
  }
  auto lock = collector.files->Lock(collector.directory);
  if (!lock.ok()) return lock.status();
  auto started = std::make_unique<NatsCollector>(std::move(options), *std::move(lock));
  if (absl::Status status = started->Start(); !status.ok()) return status;
  return started;
}

}  // namespace vcpulse::stream

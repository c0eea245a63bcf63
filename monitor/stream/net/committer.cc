#include "monitor/stream/net/committer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/signals.h"
#include "kvm/base/text.h"
#include "monitor/timeline/chunk_encoder.h"

namespace vcpulse::stream {
namespace {

constexpr std::chrono::seconds kRetainPeriod{60};
constexpr std::chrono::seconds kLookPeriod{20};
// A stream whose agent connects again within that time, or is one of so many, is not looked at
// anew.
constexpr int64_t kKeepIdle_ns = 60'000'000'000;
// What is done for one agent in a round where there are many: 128 small chunks of one stream, or
// 512 KiB of it, or a few of 2 streams, or the opening of one. That takes a disk a few
// milliseconds. Up to 16 agents share what 16 may have.
constexpr uint64_t kAgentCost = 256;
constexpr uint64_t kRoundCost = 16 * kAgentCost;
constexpr uint64_t kCostOfOpen = 256;
constexpr uint64_t kCostOfSync = 128;
constexpr size_t kBytesOfCost = 4096;
// An agent has at most its share of the disk's time, of up to so many agents: from the round's
// begin on, others can have the disk for as often as long as its part took, but not for longer than
// that.
constexpr size_t kMostShares = 64;
constexpr int64_t kLongestRest_ns = 250'000'000;
// What is durable is not reported later than that for the sake of what is not yet.
constexpr int64_t kReportWithin_ns = 1'000'000;

}  // namespace

Committer::Committer(Options options)
    : options_(std::move(options)),
      folders_(*options_.files, options_.directory),
      retainer_(*options_.files, options_.directory, options_.retention, options_.realtime(),
                options_.say) {
  if (const auto identity = options_.files->IdentityOf(options_.directory); identity.ok()) {
    directory_identity_ = *identity;
  }
  const BlockedSignals blocked;  // they are for other threads
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "vcpulse-disk");
}

Committer::~Committer() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

uint64_t Committer::CostOf(const Job& job, const Job* before) {
  if (job.kind == Job::Kind::kOpen) return kCostOfOpen;
  const bool is_same_file = before != nullptr && before->stream == job.stream;
  const size_t bytes = job.chunk == nullptr ? 0 : job.chunk->size();
  return (is_same_file ? 1 : kCostOfSync) + bytes / kBytesOfCost;
}

void Committer::Put(Job job) {
  job.put_ns = MonotonicNow_ns();
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    const std::string agent = job.stream.agent_folder;  // which leaves with the job
    const int64_t put_ns = job.put_ns;
    is_first = jobs_.Put(agent, std::move(job), put_ns);
  }
  if (is_first) wake_.notify_one();
}

void Committer::Open(ConnectionId connection, const StreamKey& stream, const Told& told) {
  Put({.kind = Job::Kind::kOpen, .connection = connection, .stream = stream, .told = told});
}

void Committer::Write(ConnectionId connection, const StreamKey& stream,
                      const timeline::ChunkHeader& header, Bytes chunk) {
  Put({.kind = Job::Kind::kWrite,
       .connection = connection,
       .stream = stream,
       .header = header,
       .chunk = std::move(chunk)});
}

void Committer::WriteLost(ConnectionId connection, const StreamKey& stream,
                          const v1::LostRecords& lost) {
  Put({.kind = Job::Kind::kWriteLost, .connection = connection, .stream = stream, .lost = lost});
}

void Committer::Close(ConnectionId connection, const StreamKey& stream) {
  {
    const std::lock_guard lock(mutex_);
    gone_.insert(connection);
  }
  Put({.kind = Job::Kind::kClose, .connection = connection, .stream = stream});
}

void Committer::Abandon() {
  abandoned_ = true;
  const std::lock_guard lock(mutex_);
  jobs_.clear();
}

bool Committer::IsGone(ConnectionId connection) {
  const std::lock_guard lock(mutex_);
  return gone_.contains(connection);
}

bool Committer::Drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  drains_ = true;
  wake_.notify_one();
  return idle_.wait_for(lock, patience, [this] { return jobs_.empty() && !round_put_ns_; });
}

Committer::Health Committer::health() const {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = MonotonicNow_ns();
  int64_t since_ns = round_put_ns_.value_or(now_ns);
  jobs_.ForEachOldest([&](const Job& job) { since_ns = std::min(since_ns, job.put_ns); });
  return {.waits_ns = now_ns - since_ns, .directory_error = directory_error_};
}

void Committer::WaitForRound(std::unique_lock<std::mutex>& lock) {
  const int64_t look_ns = MonotonicNow_ns() + std::chrono::nanoseconds(kLookPeriod).count();
  while (true) {
    const int64_t now_ns = MonotonicNow_ns();
    const int64_t next_ns = jobs_.NextRound_ns().value_or(look_ns);
    const bool hurries = ends_ || (drains_ && !jobs_.empty());
    if (hurries || next_ns <= now_ns || look_ns <= now_ns) return;
    wake_.wait_for(lock, std::chrono::nanoseconds(std::min(next_ns, look_ns) - now_ns));
  }
}

void Committer::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    WaitForRound(lock);
    if (jobs_.empty() && ends_) return;
    if (ends_ || drains_) jobs_.EndRests();
    const int64_t begin_ns = MonotonicNow_ns();
    std::list<Job> jobs =
        jobs_.TakeRound({.all = kRoundCost, .least = kAgentCost}, CostOf, begin_ns);
    if (!jobs.empty()) round_put_ns_ = std::ranges::min(jobs, {}, &Job::put_ns).put_ns;
    lock.unlock();
    Commit(jobs);
    jobs.clear();  // takes a while where they are many: not under the lock
    lock.lock();
    const auto shares = static_cast<int64_t>(std::clamp<size_t>(jobs_.active(), 1, kMostShares));
    for (const auto& [agent, time_ns] : std::exchange(round_times_ns_, {})) {
      jobs_.Rest(agent, begin_ns + time_ns + std::min(time_ns * (shares - 1), kLongestRest_ns));
    }
    round_put_ns_.reset();
    if (jobs_.empty()) idle_.notify_all();
    lock.unlock();
    LookAround();
    lock.lock();
  }
}

void Committer::Commit(const std::list<Job>& jobs) {
  Round round;
  for (auto job = jobs.begin(); job != jobs.end();) {
    // Opening takes long, and waits for the disk itself.
    if (job->kind == Job::Kind::kOpen) Sync(round);
    const std::string& agent = job->stream.agent_folder;
    const int64_t begin_ns = MonotonicNow_ns();
    do {
      if (abandoned_) return;
      Do(*job++, round);
    } while (job != jobs.end() && job->kind != Job::Kind::kOpen &&
             job->stream.agent_folder == agent);
    round_times_ns_[agent] += MonotonicNow_ns() - begin_ns;
  }
  Sync(round);
  if (std::exchange(has_new_idle_, false)) CloseIdle();
}

void Committer::LookAround() {
  const int64_t now_ns = MonotonicNow_ns();
  const auto is_due = [now_ns](int64_t& last_ns, std::chrono::nanoseconds period) {
    if (now_ns - last_ns < period.count()) return false;
    last_ns = now_ns;
    return true;
  };
  if (is_due(looked_ns_, kLookPeriod)) {
    CheckDirectory();
    CloseIdle();
  }
  if (is_due(retained_ns_, kRetainPeriod)) Retain();
}

// Files that are open would take what is written wherever the directory has gone.
void Committer::CheckDirectory() {
  if (!directory_identity_) return;
  const auto identity = options_.files->IdentityOf(options_.directory);
  const bool is_there = identity.ok() && *identity == *directory_identity_;
  std::string error;
  if (!is_there) {
    error = absl::StrCat(options_.directory,
                         " was moved, replaced or removed: nothing is stored until it is back (or "
                         "vcpulse is started anew)");
  }
  {
    const std::lock_guard lock(mutex_);
    if (directory_error_ == error) return;
    directory_error_ = error;
  }
  options_.say(is_there ? absl::StrCat(options_.directory, " is back") : error);
  folders_.Forget();
  streams_.clear();  // opened again by the next connections
}

void Committer::Do(const Job& job, Round& round) {
  switch (job.kind) {
    case Job::Kind::kOpen:
      return DoOpen(job);
    case Job::Kind::kWrite:
    case Job::Kind::kWriteLost:
      return DoWrite(job, round);
    case Job::Kind::kClose: {
      {
        const std::lock_guard lock(mutex_);
        gone_.erase(job.connection);
      }
      Progress& progress = round[job.connection];
      progress.connection = job.connection;
      progress.stream = job.stream;
      progress.closed = true;
      const auto found = streams_.find(job.stream);
      if (found == streams_.end() || found->second.connection != job.connection) return;
      found->second.idle_since_ns = MonotonicNow_ns();
      has_new_idle_ = true;
    }
  }
}

absl::StatusOr<std::unique_ptr<StreamStore>> Committer::OpenStore(const Job& job) {
  if (!directory_error_.empty()) return absl::UnavailableError(directory_error_);
  const int64_t realtime_ns = options_.realtime();
  const int64_t start_ns = job.told.start_realtime_ns.value_or(realtime_ns);
  auto folder = folders_.FolderOf(job.stream.agent_folder, job.stream.stream,
                                  start_ns < 0 ? realtime_ns : start_ns);
  if (!folder.ok()) return folder.status();
  return StreamStore::Open(*options_.files, *std::move(folder), job.stream.stream, options_.store,
                           job.told.first_held, realtime_ns);
}

void Committer::DoOpen(const Job& job) {
  if (IsGone(job.connection)) return;
  Progress progress;
  progress.connection = job.connection;
  progress.stream = job.stream;
  progress.opened = true;
  Stream& stream = streams_[job.stream];
  stream.connection = job.connection;
  stream.idle_since_ns.reset();
  stream.has_failed = false;
  if (stream.store == nullptr) {
    auto store = OpenStore(job);
    if (!store.ok()) {
      progress.error = std::move(store).status();
      streams_.erase(job.stream);
      return Report(std::move(progress));
    }
    stream.store = *std::move(store);
    progress.notice = stream.store->notice();
  }
  // What another connection had written, and what a failed round left, counts only once synced.
  progress.error = stream.store->Sync();
  progress.durable = stream.store->durable();
  // Now, not at the end of the round: others may wait for long in it.
  Report(std::move(progress));
}

void Committer::Report(Progress progress) {
  std::vector<Progress> report;
  report.push_back(std::move(progress));
  options_.report(std::move(report));
}

void Committer::DoWrite(const Job& job, Round& round) {
  Progress& progress = round[job.connection];
  progress.connection = job.connection;
  progress.stream = job.stream;
  const bool is_lost = job.kind == Job::Kind::kWriteLost;
  progress.settled_bytes += BytesOf(is_lost ? 0 : job.chunk->size());
  const auto found = streams_.find(job.stream);
  if (found == streams_.end()) {  // the directory has gone, or has come back
    progress.error = absl::UnavailableError(
        directory_error_.empty() ? "the directory was moved meanwhile" : directory_error_);
    return;
  }
  // A connection that lost the stream to a later one, or in which a chunk failed already.
  if (found->second.connection != job.connection) return;
  Stream& stream = found->second;
  if (stream.has_failed) return;
  if (is_lost) {
    progress.error = stream.store->AppendLost(job.lost, options_.realtime());
  } else {
    progress.error = stream.store->Append(job.header, *job.chunk, options_.realtime());
  }
  if (!progress.error.ok()) {
    stream.has_failed = true;
    return;
  }
  if (!is_lost) {
    progress.chunks.push_back({.last_sequence = job.header.last_sequence,
                               .last_mono_ns = job.header.last_mono_ns,
                               .bytes = job.chunk});
    return;
  }
  progress.chunks.push_back(
      {.last_sequence = job.lost.last_sequence(),
       .lost_records = job.lost.last_sequence() - job.lost.first_sequence() + 1,
       .bytes = std::make_shared<const std::vector<uint8_t>>(
           timeline::EncodeLostChunk(job.stream.stream, job.lost))});
}

void Committer::Sync(Round& round) {
  std::vector<Progress> report;
  int64_t reported_ns = MonotonicNow_ns();
  for (auto& [connection, progress] : round) {
    const int64_t begin_ns = MonotonicNow_ns();
    SyncStreamOf(connection, progress);
    const int64_t now_ns = MonotonicNow_ns();
    round_times_ns_[progress.stream.agent_folder] += now_ns - begin_ns;
    report.push_back(std::move(progress));
    if (now_ns - reported_ns < kReportWithin_ns) continue;
    options_.report(std::exchange(report, {}));
    reported_ns = now_ns;
  }
  round.clear();
  if (!report.empty()) options_.report(std::move(report));
}

void Committer::SyncStreamOf(ConnectionId connection, Progress& progress) {
  const auto found = streams_.find(progress.stream);
  // Of a connection that has lost its stream in this round DoOpen knows what is durable.
  if (found != streams_.end() && found->second.connection == connection) {
    Stream& stream = found->second;
    if (options_.sync) {
      absl::Status synced = stream.store->Sync();
      if (!synced.ok()) {
        stream.has_failed = true;
        progress.error = std::move(synced);
      }
    }
    progress.durable = options_.sync ? stream.store->durable() : stream.store->written();
  }
  std::erase_if(progress.chunks, [&](const Progress::Chunk& chunk) {
    return chunk.last_sequence > progress.durable;
  });
}

void Committer::CloseIdle() {
  const int64_t now_ns = MonotonicNow_ns();
  size_t idle = 0;
  std::erase_if(streams_, [&](const auto& entry) {
    const std::optional<int64_t>& since_ns = entry.second.idle_since_ns;
    return since_ns && (now_ns - *since_ns > kKeepIdle_ns || ++idle > options_.most_idle);
  });
}

void Committer::Retain() {
  if (!directory_error_.empty()) return;
  std::set<std::string> live;
  for (const auto& [id, stream] : streams_) live.insert(stream.store->directory());
  const bool any = retainer_.Apply(
      options_.realtime(), [&](const std::string& directory) { return live.contains(directory); });
  if (any) folders_.Forget();
}

}  // namespace vcpulse::stream

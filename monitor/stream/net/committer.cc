#include "monitor/stream/net/committer.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/stream/net/clocks.h"

namespace vcpulse::stream {
namespace {

constexpr std::chrono::seconds kRetainPeriod{60};

}  // namespace

Committer::Committer(Options options) : options_(std::move(options)) {
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

void Committer::Put(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Committer::Open(ConnectionId connection, const std::string& agent_folder,
                     const timeline::StreamId& stream) {
  Put({.kind = Job::Kind::kOpen,
       .connection = connection,
       .stream = stream,
       .agent_folder = agent_folder});
}

void Committer::Write(ConnectionId connection, const timeline::StreamId& stream,
                      const timeline::ChunkHeader& header, Bytes chunk) {
  Put({.kind = Job::Kind::kWrite,
       .connection = connection,
       .stream = stream,
       .header = header,
       .chunk = std::move(chunk)});
}

void Committer::WriteLost(ConnectionId connection, const timeline::StreamId& stream,
                          const v1::LostRecords& lost) {
  Put({.kind = Job::Kind::kWriteLost, .connection = connection, .stream = stream, .lost = lost});
}

void Committer::Close(ConnectionId connection, const timeline::StreamId& stream) {
  Put({.kind = Job::Kind::kClose, .connection = connection, .stream = stream});
}

bool Committer::Drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, patience, [this] { return jobs_.empty() && !busy_; });
}

void Committer::Run() {
  std::deque<Job> jobs;
  std::unique_lock lock(mutex_);
  while (true) {
    // Woken for retention too, where nothing is sent for long.
    wake_.wait_for(lock, kRetainPeriod, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty() && ends_) return;
    jobs.swap(jobs_);
    busy_ = true;
    lock.unlock();
    Commit(jobs);
    jobs.clear();
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

void Committer::Commit(std::deque<Job>& jobs) {
  Round round;
  for (const Job& job : jobs) Do(job, round);
  Sync(round);
  std::vector<Progress> report;
  report.reserve(round.size());
  for (auto& [connection, progress] : round) report.push_back(std::move(progress));
  if (!report.empty()) options_.report(std::move(report));
  if (MonotonicNow_ns() - retained_ns_ > std::chrono::nanoseconds(kRetainPeriod).count()) Retain();
}

void Committer::Do(const Job& job, Round& round) {
  switch (job.kind) {
    case Job::Kind::kOpen:
      return DoOpen(job, round);
    case Job::Kind::kWrite:
    case Job::Kind::kWriteLost:
      return DoWrite(job, round);
    case Job::Kind::kClose: {
      const auto found = streams_.find(job.stream);
      if (found == streams_.end() || found->second.connection != job.connection) return;
      // Its last chunks may belong to this round.
      if (found->second.store != nullptr && options_.sync) {
        static_cast<void>(found->second.store->Sync());
      }
      streams_.erase(found);
    }
  }
}

void Committer::DoOpen(const Job& job, Round& round) {
  Progress& progress = round[job.connection];
  progress.connection = job.connection;
  progress.stream = job.stream;
  progress.opened = true;
  Stream& stream = streams_[job.stream];
  stream.connection = job.connection;
  stream.error = absl::OkStatus();
  if (stream.store == nullptr || stream.agent_folder != job.agent_folder) {
    stream.agent_folder = job.agent_folder;
    auto store =
        StreamStore::Open(*options_.files, absl::StrCat(options_.directory, "/", job.agent_folder),
                          job.stream, options_.store, RealtimeNow_ns());
    if (!store.ok()) {
      progress.error = store.status();
      streams_.erase(job.stream);
      return;
    }
    stream.store = *std::move(store);
    progress.notice = stream.store->notice();
  }
  // What another connection had written, and what a failed round left, counts only once synced.
  progress.error = stream.store->Sync();
  progress.durable = stream.store->durable();
}

void Committer::DoWrite(const Job& job, Round& round) {
  Progress& progress = round[job.connection];
  progress.connection = job.connection;
  progress.stream = job.stream;
  const size_t bytes = job.chunk == nullptr ? 0 : job.chunk->size();
  progress.settled_bytes += bytes;
  const auto found = streams_.find(job.stream);
  // A connection that lost the stream to a later one, or in which a chunk failed already.
  if (found == streams_.end() || found->second.connection != job.connection) return;
  Stream& stream = found->second;
  if (!stream.error.ok()) return;
  if (job.kind == Job::Kind::kWriteLost) {
    stream.error = stream.store->AppendLost(job.lost, RealtimeNow_ns());
  } else {
    stream.error = stream.store->Append(job.header, *job.chunk, RealtimeNow_ns());
  }
  if (!stream.error.ok()) {
    progress.error = stream.error;
    return;
  }
  if (job.chunk == nullptr) return;
  progress.chunks.push_back({.last_sequence = job.header.last_sequence,
                             .last_mono_ns = job.header.last_mono_ns,
                             .bytes = job.chunk});
}

void Committer::Sync(Round& round) {
  for (auto& [connection, progress] : round) {
    const auto found = streams_.find(progress.stream);
    if (found == streams_.end() || found->second.connection != connection) continue;
    Stream& stream = found->second;
    if (options_.sync) {
      const absl::Status synced = stream.store->Sync();
      if (!synced.ok()) {
        stream.error = synced;
        progress.error = synced;
      }
    }
    progress.durable = options_.sync ? stream.store->durable() : stream.store->written();
    std::erase_if(progress.chunks, [&](const Progress::Chunk& chunk) {
      return chunk.last_sequence > progress.durable;
    });
  }
}

void Committer::Retain() {
  retained_ns_ = MonotonicNow_ns();
  if (!options_.retention.max_age_ns && !options_.retention.max_bytes) return;
  const auto removed =
      ApplyRetention(*options_.files, options_.directory, options_.retention, RealtimeNow_ns(),
                     [this](const std::string& directory) { return IsLive(directory); });
  if (!removed.ok()) return options_.say(std::string(removed.status().message()));
  for (const std::string& error : removed->errors) options_.say(error);
  if (removed->files > 0) {
    options_.say(absl::StrCat("removed ", removed->files, " files (", removed->bytes,
                              " bytes) that are too old or too many"));
  }
}

bool Committer::IsLive(const std::string& stream_directory) const {
  for (const auto& [id, stream] : streams_) {
    if (stream.store != nullptr && stream.store->directory() == stream_directory) return true;
  }
  return false;
}

}  // namespace vcpulse::stream

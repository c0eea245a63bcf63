#include "monitor/stream/disk/stream_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "monitor/core/check.h"
#include "monitor/stream/disk/names.h"
#include "monitor/timeline/chunk_encoder.h"

namespace vcpulse::stream {
StreamStore::StreamStore(Files& files, std::string directory, const timeline::StreamId& stream,
                         const Options& options)
    : files_(files), directory_(std::move(directory)), stream_(stream), options_(options) {}

absl::StatusOr<std::unique_ptr<StreamStore>> StreamStore::Open(Files& files, std::string directory,
                                                               const timeline::StreamId& stream,
                                                               const Options& options,
                                                               uint64_t first_held,
                                                               int64_t realtime_ns) {
  std::unique_ptr<StreamStore> store(new StreamStore(files, std::move(directory), stream, options));
  if (absl::Status status = store->Recover(first_held, realtime_ns); !status.ok()) return status;
  return store;
}

absl::Status StreamStore::Append(const timeline::ChunkHeader& header,
                                 std::span<const uint8_t> chunk, int64_t realtime_ns) {
  return Write(header.first_sequence, std::max(written_, header.last_sequence), chunk, realtime_ns);
}

absl::Status StreamStore::AppendLost(const v1::LostRecords& lost, int64_t realtime_ns) {
  return Write(lost.first_sequence(), lost.last_sequence(),
               timeline::EncodeLostChunk(stream_, lost), realtime_ns);
}

absl::Status StreamStore::Write(uint64_t first_sequence, uint64_t settles_to,
                                std::span<const uint8_t> chunk, int64_t realtime_ns) {
  VCPULSE_CHECK(first_sequence > written_, "a chunk that begins before the end of the stream");
  if (must_be_cut_) {
    if (absl::Status status = GiveUpUnsynced(); !status.ok()) return status;
  }
  if (absl::Status status = LeaveFileWhereDue(realtime_ns); !status.ok()) return status;
  if (file_ == nullptr) {
    if (absl::Status status = BeginFile(first_sequence); !status.ok()) return status;
  }
  if (absl::Status status = file_->Append(chunk); !status.ok()) return status;
  // A clock that was set back must not keep a file open for longer.
  file_begun_ns_ = std::min(file_begun_ns_.value_or(realtime_ns), realtime_ns);
  bytes_written_ += chunk.size();
  written_ = settles_to;
  return absl::OkStatus();
}

absl::Status StreamStore::LeaveFileWhereDue(int64_t realtime_ns) {
  if (file_ == nullptr || file_->size() == 0) return absl::OkStatus();
  const bool due = must_be_left_ || file_->size() >= options_.rotate_bytes ||
                   (file_begun_ns_ && realtime_ns > *file_begun_ns_ &&
                    realtime_ns - *file_begun_ns_ >= options_.rotate_ns);
  if (!due) return absl::OkStatus();
  // The next Sync knows only the next file.
  if (absl::Status status = Sync(); !status.ok()) return status;
  file_.reset();
  return absl::OkStatus();
}

absl::Status StreamStore::BeginFile(uint64_t first_sequence) {
  if (absl::Status status = files_.MakeDirectories(directory_); !status.ok()) return status;
  const std::string path = absl::StrCat(directory_, "/", FileNameOf(first_sequence));
  auto file = files_.OpenToAppend(path, true);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  path_ = path;
  durable_bytes_ = 0;
  file_begun_ns_.reset();
  names_unsynced_ = true;
  must_be_left_ = false;
  return absl::OkStatus();
}

absl::Status StreamStore::Sync() {
  if (must_be_cut_) return GiveUpUnsynced();
  if (file_ == nullptr || (file_->size() == durable_bytes_ && !names_unsynced_)) {
    return absl::OkStatus();
  }
  absl::Status status = SyncFileAndFolders();
  if (status.ok()) {
    durable_bytes_ = file_->size();
    durable_ = written_;
    names_unsynced_ = false;
    return absl::OkStatus();
  }
  written_ = durable_;
  if (absl::IsNotFound(status)) {  // somebody removed the file: there is nothing to cut
    file_.reset();
    return status;
  }
  must_be_cut_ = true;
  static_cast<void>(GiveUpUnsynced());  // else before the next chunk
  return status;
}

absl::Status StreamStore::SyncFileAndFolders() {
  if (absl::Status status = file_->Sync(); !status.ok() || !names_unsynced_) return status;
  // The folders too: a collector that was killed may have made them and no more.
  const std::string agent_directory = ParentOf(directory_);
  for (const std::string& folder : {directory_, agent_directory, ParentOf(agent_directory)}) {
    if (absl::Status status = files_.SyncDirectory(folder); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Cuts off what was never synced. That has to be on disk before any later file is: after a crash
// two files would hold the same records.
absl::Status StreamStore::GiveUpUnsynced() {
  if (absl::Status status = file_->Truncate(durable_bytes_); !status.ok()) return status;
  if (absl::Status status = file_->Sync(); !status.ok()) return status;
  must_be_cut_ = false;
  must_be_left_ = true;
  if (durable_bytes_ == 0) file_begun_ns_.reset();
  return absl::OkStatus();
}

}  // namespace vcpulse::stream

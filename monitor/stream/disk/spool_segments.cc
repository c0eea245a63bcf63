#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/disk/spool_stream.h"

// How the spool writes segments and removes them.
namespace vcpulse::stream {

// Writes what is in memory alone, oldest first. What no disk bound allows stays there.
void Spool::WriteWaiting() {
  if (options_.directory.empty()) return;
  RemoveLeftOver();
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = *streams_[i];
    std::deque<uint64_t> too_large;
    absl::Status status;
    while (!stream.waiting.empty()) {
      const uint64_t first = stream.waiting.front();
      if (stream.Find(first)->bytes > options_.max_disk_bytes) {
        too_large.push_back(first);
      } else if (status = Write(stream, first); !status.ok()) {
        break;
      }
      stream.waiting.pop_front();
    }
    stream.waiting.insert(stream.waiting.begin(), too_large.begin(), too_large.end());
    // Such a chunk may be sent and acknowledged, and no file ever knew of it.
    if (is_marked_ && !stream.waiting.empty()) RemoveMark();
    if (!status.ok()) {
      disk_status_ = status;
      return;
    }
  }
  disk_status_ = absl::OkStatus();
}

absl::Status Spool::Write(Stream& stream, uint64_t first_sequence) {
  const uint64_t bytes = stream.Find(first_sequence)->bytes;
  if (absl::Status status = MakeRoomOnDisk(bytes); !status.ok()) return status;
  if (writing_to_ != &stream ||
      (segment_->size() > 0 && segment_->size() + bytes > options_.segment_bytes)) {
    if (absl::Status status = BeginSegment(stream, first_sequence); !status.ok()) return status;
  }
  Entry& entry = *stream.Find(first_sequence);
  Segment& segment = stream.segments.back();
  const uint64_t offset = segment_->size();
  absl::Status status = segment_->Append(entry.memory);
  // Where part of it could be neither written nor cut off, it counts as if it were there.
  const uint64_t now = segment_->size() + (segment_->is_torn() ? bytes : 0);
  disk_bytes_ += now - segment.bytes;
  segment.bytes = now;
  if (!status.ok()) return status;
  segment_unsynced_ = true;
  segment.last_sequence = entry.last_sequence;
  stream.NoteOnDisk(entry, segment.id, offset);
  cached_.push_back({.stream = stream.id, .first_sequence = first_sequence});
  return absl::OkStatus();
}

// Drops the oldest segments until `bytes` more are within the bound.
absl::Status Spool::MakeRoomOnDisk(uint64_t bytes) {
  for (const auto& stream : streams_) {
    while (disk_bytes_ + bytes > options_.max_disk_bytes && !stream->segments.empty()) {
      const Segment oldest = stream->segments.front();
      if (absl::Status status = RemoveOldestSegment(*stream); !status.ok()) return status;
      stream->Lose(0, oldest.last_sequence, v1::LostRecords::REASON_SPOOL_FULL,
                   [&](const Entry& entry) { return entry.segment == oldest.id; });
    }
  }
  if (disk_bytes_ + bytes <= options_.max_disk_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the spool in ", options_.directory, " is full of files that it cannot remove"));
}

absl::Status Spool::BeginSegment(Stream& stream, uint64_t first_sequence) {
  LeaveSegment();
  if (stream.folder.empty()) {
    stream.folder = absl::StrCat(options_.directory, "/", absl::StrFormat("%010d", next_folder_++),
                                 "-", ToHex(stream.id));
  }
  if (absl::Status status = files_.MakeDirectories(stream.folder); !status.ok()) return status;
  const std::string path = absl::StrCat(stream.folder, "/", FileNameOf(first_sequence));
  auto file = files_.OpenToAppend(path, true);
  if (!file.ok()) return file.status();
  segment_ = *std::move(file);
  writing_to_ = &stream;
  stream.segments.push_back(
      {.id = next_segment_++, .path = path, .last_sequence = first_sequence - 1});
  folders_unsynced_.push_back(stream.folder);
  return absl::OkStatus();
}

void Spool::LeaveSegment() {
  if (segment_ != nullptr && segment_unsynced_) left_unsynced_.push_back(std::move(segment_));
  segment_.reset();
  writing_to_ = nullptr;
  segment_unsynced_ = false;
}

absl::Status Spool::RemoveOldestSegment(Stream& stream) {
  const Segment& segment = stream.segments.front();
  absl::Status status = files_.Remove(segment.path);
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  if (writing_to_ == &stream && stream.segments.size() == 1) {
    segment_unsynced_ = false;
    LeaveSegment();
  }
  disk_bytes_ -= segment.bytes;
  stream.segments.pop_front();
  return absl::OkStatus();
}

void Spool::RemoveAcknowledged(Stream& stream, uint64_t durable) {
  while (!stream.segments.empty() && stream.segments.front().last_sequence <= durable) {
    if (RemoveOldestSegment(stream).ok()) continue;
    if (is_marked_) RemoveMark();
    if (writing_to_ == &stream && stream.segments.size() == 1) LeaveSegment();
    left_over_.push_back(std::move(stream.segments.front()));
    stream.segments.pop_front();
  }
}

void Spool::RemoveLeftOver() {
  std::erase_if(left_over_, [this](const Segment& segment) {
    const absl::Status status = files_.Remove(segment.path);
    if (!status.ok() && !absl::IsNotFound(status)) return false;
    disk_bytes_ -= segment.bytes;
    return true;
  });
}

void Spool::Sync() {
  const absl::Status status = SyncWritten();
  if (status.ok()) return;
  disk_status_ = status;
  if (is_marked_) RemoveMark();
  // What the file holds is not known any more; it is checked when it is read.
  if (segment_ != nullptr && segment_->size() > 0) LeaveSegment();
  left_unsynced_.clear();
}

absl::Status Spool::SyncWritten() {
  for (const auto& file : left_unsynced_) {
    if (absl::Status status = file->Sync(); !status.ok()) return status;
  }
  left_unsynced_.clear();
  if (segment_unsynced_) {
    if (absl::Status status = segment_->Sync(); !status.ok()) return status;
    segment_unsynced_ = false;
  }
  for (const std::string& folder : folders_unsynced_) {
    absl::Status status = files_.SyncDirectory(folder);
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  folders_unsynced_.clear();
  return absl::OkStatus();
}

}  // namespace vcpulse::stream

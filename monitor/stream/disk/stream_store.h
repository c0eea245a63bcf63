#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"
#include "vcpulse/v1/timeline.pb.h"

namespace vcpulse::stream {

// The timeline of one stream on the collector's disk: files FIRST-SEQUENCE.vpt with 20 digits,
// which sort by sequence, in the stream's folder (StreamFolders). Each is a timeline of its own,
// whole at any instant but for a torn end. One thread at a time.
class StreamStore {
 public:
  struct Options {
    uint64_t rotate_bytes = 64u << 20;
    int64_t rotate_ns = 3'600'000'000'000;
  };

  // Opens the stream's folder, which need not be there before the first Append. The
  // last file is checked: a torn end is cut off, and so is all behind damage that the agent can
  // send again, which holds the records from `first_held` on. Where it cannot, whole chunks behind
  // damage stay where they are, and readers miss the damaged ones alone. What is left is synced, as
  // whoever wrote it may have died before he could. Errors: what the system said.
  static absl::StatusOr<std::unique_ptr<StreamStore>> Open(Files& files, std::string directory,
                                                           const timeline::StreamId& stream,
                                                           const Options& options,
                                                           uint64_t first_held,
                                                           int64_t realtime_ns);

  // Adds a chunk that begins behind written() (else CHECK). It is not durable yet. After an error
  // the store is as before, less what was not synced where it had to be given up: go on from
  // written(), which may have gone back to durable().
  absl::Status Append(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk,
                      int64_t realtime_ns);
  // The same for records that are lost: a chunk without records that says so.
  absl::Status AppendLost(const v1::LostRecords& lost, int64_t realtime_ns);
  // Makes all that was written durable, new folders and files too. After an error what was not
  // durable is given up: it is cut off, later chunks go to a new file.
  absl::Status Sync();

  uint64_t written() const { return written_; }  // last sequence that was appended
  uint64_t durable() const { return durable_; }  // last sequence that was synced
  // Of this stream since Open.
  uint64_t bytes_written() const { return bytes_written_; }
  const std::string& directory() const { return directory_; }
  // What Open has cut off or found damaged, for people; empty: nothing.
  const std::string& notice() const { return notice_; }

 private:
  StreamStore(Files& files, std::string directory, const timeline::StreamId& stream,
              const Options& options);

  // Of Open (store_recovery.cc).
  absl::Status Recover(uint64_t first_held, int64_t realtime_ns);
  absl::StatusOr<bool> RecoverFile(const std::string& name, bool is_newest, uint64_t first_held,
                                   int64_t realtime_ns);
  absl::StatusOr<std::unique_ptr<AppendFile>> WriteAnew(const std::string& path, uint64_t bytes);

  absl::Status Write(uint64_t first_sequence, uint64_t settles_to, std::span<const uint8_t> chunk,
                     int64_t realtime_ns);
  absl::Status LeaveFileWhereDue(int64_t realtime_ns);
  absl::Status BeginFile(uint64_t first_sequence);
  absl::Status GiveUpUnsynced();
  absl::Status SyncFileAndFolders();

  Files& files_;
  const std::string directory_;
  timeline::StreamId stream_;
  Options options_;
  std::unique_ptr<AppendFile> file_;  // the one that is appended to; none before the first Append
  std::string path_;
  uint64_t durable_bytes_ = 0;            // of file_
  std::optional<int64_t> file_begun_ns_;  // its first chunk came; none where it has none yet
  bool names_unsynced_ = true;            // of the file and the folders above it
  bool must_be_cut_ = false;              // file_ to durable_bytes_, before anything else
  bool must_be_left_ = false;             // file_ for a new one
  uint64_t written_ = 0;
  uint64_t durable_ = 0;
  uint64_t bytes_written_ = 0;
  std::string notice_;
};

}  // namespace vcpulse::stream

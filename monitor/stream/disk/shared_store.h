#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"
#include "monitor/stream/disk/sequence_ranges.h"
#include "monitor/stream/disk/stream_store.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// What came here of a stream that several collectors share: any of its chunks, in any order, some
// of them again. Files are timelines of the names that StreamStore gives them, and hold chunks in
// the order in which they came; readers put them in order, and join what several folders hold. One
// thread.
class SharedStore {
 public:
  // Opens the stream's folder, which need not be there before the first Append, and reads all files
  // for what they hold. Torn ends are cut off; what is left is synced, as whoever wrote it may have
  // died before he could. Errors: what the system said.
  static absl::StatusOr<std::unique_ptr<SharedStore>> Open(Files& files, std::string directory,
                                                           const StreamStore::Options& options);

  // Whether that chunk need not be stored: its records are here, or, where it tells of records that
  // are lost (`settles_to`: the last of them), they are here or known to be lost.
  bool Holds(const timeline::ChunkHeader& header, uint64_t settles_to) const;
  // Adds a chunk that Holds does not know. Not durable yet. After an error that chunk alone is not
  // here, unless syncing the file before it failed: then see Sync.
  absl::Status Append(const timeline::ChunkHeader& header, uint64_t settles_to,
                      std::span<const uint8_t> chunk, int64_t realtime_ns);
  // Makes all that was appended durable, new folders and files too. After an error what was not
  // durable is cut off where that can be had, and everything fails from then on: open it anew.
  absl::Status Sync();
  // The same, after Files::SyncFileSystem has done it. NotFound where somebody removed the file.
  absl::Status NoteSynced();
  // After a SyncFileSystem that failed: cuts off what is not durable, as a failed Sync does. The
  // store must be opened anew.
  void GiveUpUnsynced(const absl::Status& why);
  // Closes the file, of which nothing may be unsynced (else it does nothing). The next chunk opens
  // it again.
  void Rest();
  bool is_open() const { return file_ != nullptr; }

  const std::string& directory() const { return directory_; }
  const std::string& notice() const { return notice_; }  // what Open has cut off, for people

 private:
  SharedStore(Files& files, std::string directory, const StreamStore::Options& options)
      : files_(files), directory_(std::move(directory)), options_(options) {}

  absl::Status Recover(const std::string& name);
  absl::Status OpenFile(uint64_t first_sequence, int64_t realtime_ns);
  absl::Status BeginFile(uint64_t first_sequence, int64_t realtime_ns);
  void Note(const timeline::ChunkHeader& header, uint64_t settles_to);

  Files& files_;
  const std::string directory_;
  const StreamStore::Options options_;
  SequenceRanges records_;
  SequenceRanges lost_;
  std::unique_ptr<AppendFile> file_;
  std::string path_;     // of file_, also while it rests; empty: the next chunk begins a file
  absl::Status broken_;  // a sync has failed
  int64_t file_begun_ns_ = 0;
  uint64_t durable_bytes_ = 0;  // of file_
  bool names_unsynced_ = false;
  std::string notice_;
};

}  // namespace vcpulse::stream

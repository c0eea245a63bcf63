#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/rollup/row_text.h"
#include "monitor/rollup/store/derived_store.h"
#include "monitor/rollup/windows.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::rollup {

// Rollups of one length.
struct StoredLevel {
  int64_t length_ns = 0;
  std::string name;                     // of its folder: "10s"
  std::optional<int64_t> max_age_ns{};  // older ones are removed; nothing: kept for ever

  // Rows of so much time make a file: at most 60 windows, so many that slices make up a day. The
  // length divides a day.
  int64_t SliceNs() const;
};

// The rollups of one stream: a file of each length and slice of time,
// DIR/.rollup/LENGTH/date=YYYY-MM-DD/host=AGENT/STREAMID-START.csv, START being when the slice
// begins (UTC). A file appears whole when its slice is over, as the stream's own clock says, or the
// stream has ended or is silent for 10 minutes. Records that come late in a file of their own make
// everything be read again; files whose rows change are replaced, and where records are missing
// that an older file had, its rows stay (MergeRows). Records that were taken are not taken again.
// One thread.
class StreamRollup {
 public:
  struct Place {
    std::string directory;  // of the collector
    std::string agent;      // its folder there
    std::string stream;     // the stream's folder in that
  };
  // What the streams of a store have in common.
  struct Shared {
    stream::Files& files;
    const std::vector<StoredLevel>& levels;
    SaidOnce& said;                 // a timeline that cannot be read
    std::vector<uint8_t> buffer{};  // of a read; it is made once
  };

  // `shared` must outlive it.
  StreamRollup(Shared& shared, Place place);

  // Reads what is new, some MiB at a time, and writes the slices that are over. True where there is
  // more to read. A timeline that cannot be read counts as lost. `boottime_ns` is CLOCK_BOOTTIME.
  // Errors: what the system said; then the next call goes on where it can.
  absl::StatusOr<bool> Advance(int64_t boottime_ns);

  // Adds the folders and the parts of the slices that are not over.
  void AddInUse(std::set<std::string>& paths) const;

 private:
  static constexpr int64_t kSilence_ns = 600'000'000'000;

  struct Taken {
    std::string name;
    uint64_t bytes = 0;
    uint64_t seen_bytes = 0;     // where the last read ended: the end of a torn chunk
    bool is_unreadable = false;  // the last read failed
  };
  struct Slice {
    std::string folder;
    std::string path;
    std::string part;  // where its rows are gathered
    std::unique_ptr<RowText> rows;
  };
  using SliceKey = std::pair<size_t, int64_t>;  // level, begin

  void Begin();
  absl::StatusOr<bool> TakeNews();
  absl::StatusOr<bool> TakeFrom(Taken& taken, bool is_newest);
  absl::Status TakeChunks(std::span<const uint8_t> bytes);
  absl::Status TakeRun(std::span<const uint8_t> bytes);
  bool IsNew(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk);
  absl::Status AddRow(size_t level, const Row& row);
  absl::StatusOr<Slice*> SliceOf(size_t level, int64_t begin_ns);
  absl::Status Reopen(const SliceKey& key, Slice& slice);
  absl::Status CommitUntil(int64_t realtime_ns);
  absl::Status Commit(const SliceKey& key, Slice& slice);
  absl::StatusOr<std::string> ContentOf(const std::string& path) const;
  absl::Status Write(const std::string& path, std::string_view text, bool must_be_new);
  std::string Folder() const;

  Shared& shared_;
  stream::Files& files_;
  const std::vector<StoredLevel>& levels_;
  const Place place_;
  const std::optional<timeline::StreamId> id_;
  std::vector<Taken> taken_;          // the files in order, and how much of each was read
  std::unique_ptr<Windows> windows_;  // null: all that there is was read and written
  uint64_t last_sequence_ = 0;        // of the records that were taken
  std::map<SliceKey, std::unique_ptr<Slice>> open_;
  std::set<SliceKey> written_;  // since Begin
  // Of those that were merged with an older file, the rows of this reading; nothing where they are
  // too many.
  std::map<SliceKey, std::optional<std::string>> unmerged_;
  bool lacks_some_ = false;  // records before the last one: removed, unreadable, or lost for good
  bool has_ended_ = false;   // the last record read is its Summary
  int64_t grew_boottime_ns_ = 0;
};

}  // namespace vcpulse::rollup

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/rollup/row_text.h"
#include "monitor/rollup/windows.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::rollup {

// Rollups of one length.
struct StoredLevel {
  int64_t length_ns = 0;
  std::string name;                     // of its folder: "10s"
  std::optional<int64_t> max_age_ns{};  // older ones are removed; nothing: kept for ever

  // Rows of so much time make a file: 60 windows, at most a day.
  int64_t SliceNs() const;
};

// The rollups of one stream: a file of each length and slice of time,
// DIR/.rollup/LENGTH/date=YYYY-MM-DD/host=AGENT/STREAMID-START.csv, START being when the slice
// begins (UTC). A file appears whole when its slice is over, as the stream's own clock says, or the
// stream has ended or is silent for 10 minutes. Records that come late in a file of their own make
// everything be read again; files whose rows change are replaced. One thread.
class StreamRollup {
 public:
  struct Place {
    std::string directory;  // of the collector
    std::string agent;      // its folder there
    std::string stream;     // the stream's folder in that
  };

  // `levels` must outlive it, as must `files`.
  StreamRollup(stream::Files& files, const std::vector<StoredLevel>& levels, Place place);

  // Reads what is new, some MiB at a time, and writes the slices that are over. True where there is
  // more to read. Errors: what the system said; then the next call goes on where it can.
  absl::StatusOr<bool> Advance(int64_t realtime_ns);

 private:
  static constexpr int64_t kSilence_ns = 600'000'000'000;

  struct Taken {
    std::string name;
    uint64_t bytes = 0;
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
  absl::Status TakeChunks(const std::vector<uint8_t>& bytes);
  absl::Status AddRow(size_t level, const Row& row);
  absl::Status CopyTo(const std::string& from, const std::string& to);
  absl::StatusOr<Slice*> SliceOf(size_t level, int64_t begin_ns);
  absl::Status CommitUntil(int64_t realtime_ns);
  absl::Status Commit(const SliceKey& key, Slice& slice);
  absl::StatusOr<bool> IsSame(const std::string& a, const std::string& b) const;
  std::string Folder() const;

  stream::Files& files_;
  const std::vector<StoredLevel>& levels_;
  const Place place_;
  std::vector<Taken> taken_;          // the files in order, and how much of each was read
  std::unique_ptr<Windows> windows_;  // null: all that there is was read and written
  uint64_t finished_bytes_ = 0;       // of the newest file, where it is null
  std::map<SliceKey, std::unique_ptr<Slice>> open_;
  std::set<SliceKey> written_;           // since Begin
  std::optional<int64_t> first_row_ns_;  // begin of the first window
  bool lacks_beginning_ = false;         // it was removed
  bool came_late_ = false;               // this is read again for records that did
  bool has_ended_ = false;               // the last record read is its Summary
  int64_t grew_realtime_ns_ = 0;
};

}  // namespace vcpulse::rollup

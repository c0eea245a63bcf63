#include "monitor/rollup/store/stream_rollup.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "monitor/rollup/store/merged_rows.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::rollup {
namespace {

constexpr size_t kReadBytes = size_t{4} << 20;
constexpr int64_t kWindowsOfSlice = 60;
constexpr size_t kMostUnmerged = 16;

// Chunks that `bytes` begins with, and damage between them.
struct Whole {
  size_t bytes = 0;
  size_t wanted = 0;  // bytes that are needed to go on, where more than there are
};

using ChunkSink =
    std::function<absl::Status(const timeline::ChunkHeader& header, size_t offset, size_t bytes)>;

// Calls `sink` with each whole chunk. Errors: those of the sink.
absl::StatusOr<Whole> ForEachWholeChunk(std::span<const uint8_t> bytes, const ChunkSink& sink) {
  size_t whole = 0;
  while (whole < bytes.size()) {
    const auto rest = bytes.subspan(whole);
    const auto header = timeline::DecodeChunkHeader(rest);
    if (absl::IsOutOfRange(header.status())) {
      return Whole{.bytes = whole, .wanted = timeline::kMaxHeaderBytes};
    }
    if (!header.ok()) {  // damage: up to what may be the next chunk
      const auto next = std::ranges::search(rest.subspan(1), timeline::kChunkMagic);
      const auto passed = static_cast<size_t>(next.begin() - rest.begin());
      whole += next.empty() ? rest.size() : passed;
      continue;
    }
    const size_t chunk = size_t{header->header_bytes} + header->payload_bytes;
    if (chunk > rest.size()) return Whole{.bytes = whole, .wanted = chunk};
    if (absl::Status status = sink(*header, whole, chunk); !status.ok()) return status;
    whole += chunk;
  }
  return Whole{.bytes = whole};
}

// Rather a lack of the system than of the file.
bool IsPassing(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsResourceExhausted(status) ||
         absl::IsUnavailable(status);
}

}  // namespace

int64_t StoredLevel::SliceNs() const {
  const int64_t of_day = kDay_ns / length_ns;
  int64_t windows = std::min(kWindowsOfSlice, of_day);
  while (of_day % windows != 0) --windows;
  return windows * length_ns;
}

StreamRollup::StreamRollup(Shared& shared, Place place)
    : shared_(shared),
      files_(shared.files),
      levels_(shared.levels),
      place_(std::move(place)),
      id_(stream::StreamOfFolder(place_.stream)) {
  Begin();
}

std::string StreamRollup::Folder() const {
  return absl::StrCat(place_.directory, "/", place_.agent, "/", place_.stream);
}

void StreamRollup::AddInUse(std::set<std::string>& paths) const {
  for (const auto& [key, slice] : open_) {
    paths.insert(slice->folder);
    paths.insert(slice->part);
  }
}

void StreamRollup::Begin() {
  std::vector<int64_t> lengths_ns;
  lengths_ns.reserve(levels_.size());
  for (const StoredLevel& level : levels_) lengths_ns.push_back(level.length_ns);
  windows_ = std::make_unique<Windows>(
      lengths_ns, [this](size_t level, const Row& row) { return AddRow(level, row); });
  open_.clear();
  written_.clear();
  unmerged_.clear();
  taken_.clear();
  last_sequence_ = 0;
  lacks_some_ = false;
  has_ended_ = false;
}

absl::StatusOr<bool> StreamRollup::Advance(int64_t boottime_ns) {
  absl::StatusOr<bool> news = TakeNews();
  if (!news.ok()) return news;
  if (*news) {
    grew_boottime_ns_ = boottime_ns;
    if (const auto latest_ns = windows_->over_until_ns()) {
      if (absl::Status status = CommitUntil(*latest_ns); !status.ok()) return status;
    }
    return true;
  }
  const bool is_silent = boottime_ns - grew_boottime_ns_ >= kSilence_ns;
  if (windows_ == nullptr || (!has_ended_ && !is_silent)) return false;
  if (absl::Status status = windows_->Finish(); !status.ok()) return status;
  windows_.reset();
  absl::Status status = CommitUntil(std::numeric_limits<int64_t>::max());
  if (!status.ok()) return status;
  return false;
}

absl::StatusOr<bool> StreamRollup::TakeNews() {
  const auto names = TimelinesIn(files_, Folder());
  if (!names.ok()) return names.status();
  const std::vector<std::string>& there = *names;
  // Retention removes the oldest.
  const auto is_gone = [&there](const Taken& taken) {
    return std::ranges::find(there, taken.name) == there.end();
  };
  std::erase_if(taken_, is_gone);
  if (there.empty()) return false;
  bool begins_anew = !std::ranges::equal(  // records came late
      taken_, std::span(there).first(std::min(taken_.size(), there.size())), {}, &Taken::name);
  if (!begins_anew && !taken_.empty()) {
    const auto bytes = files_.SizeOf(absl::StrCat(Folder(), "/", taken_.back().name));
    if (!bytes.ok()) return bytes.status();
    // The collector cuts off what it could not sync.
    begins_anew = *bytes < taken_.back().seen_bytes;
    const bool is_all = *bytes == taken_.back().seen_bytes && taken_.size() == there.size();
    if (is_all && !taken_.back().is_unreadable) return false;
  }
  if (begins_anew || windows_ == nullptr) Begin();  // null: it was taken for ended
  if (taken_.empty()) taken_.push_back({.name = there.front()});
  while (true) {
    const bool is_newest = taken_.size() == there.size();
    const absl::StatusOr<bool> took = TakeFrom(taken_.back(), is_newest);
    if (!took.ok() || *took || is_newest) return took;
    taken_.push_back({.name = there[taken_.size()]});
  }
}

// False where no whole chunk is left in the file.
absl::StatusOr<bool> StreamRollup::TakeFrom(Taken& taken, bool is_newest) {
  const std::string path = absl::StrCat(Folder(), "/", taken.name);
  std::vector<uint8_t>& buffer = shared_.buffer;
  if (buffer.empty()) buffer.resize(kReadBytes);
  while (true) {
    const auto got = files_.ReadAt(path, taken.bytes, buffer);
    taken.is_unreadable = !got.ok();
    if (!got.ok()) {
      if (IsPassing(got.status())) return got.status();
      shared_.said.Say(got.status());
      return false;
    }
    taken.seen_bytes = taken.bytes + *got;
    if (*got == 0) return false;
    const auto bytes = std::span(std::as_const(buffer)).first(*got);
    const auto whole =
        ForEachWholeChunk(bytes, [](const auto&, size_t, size_t) { return absl::OkStatus(); });
    if (!whole.ok()) return whole.status();
    size_t taking = whole->bytes;
    const bool is_end = *got < buffer.size();
    if (taking == 0 && !is_end) {
      buffer.resize(std::max(whole->wanted, 2 * buffer.size()));
      continue;
    }
    if (taking == 0 && is_newest) return false;  // it is being written
    if (taking == 0) taking = *got;              // torn for good
    if (absl::Status status = TakeChunks(bytes.first(taking)); !status.ok()) return status;
    taken.bytes += taking;
    return true;
  }
}

// Those that are new.
absl::Status StreamRollup::TakeChunks(std::span<const uint8_t> bytes) {
  size_t run_begin = 0;
  const auto take = [&](const timeline::ChunkHeader& header, size_t offset, size_t size) {
    if (IsNew(header, bytes.subspan(offset, size))) return absl::OkStatus();
    absl::Status status = TakeRun(bytes.subspan(run_begin, offset - run_begin));
    run_begin = offset + size;
    return status;
  };
  const auto whole = ForEachWholeChunk(bytes, take);
  if (!whole.ok()) return whole.status();
  return TakeRun(bytes.subspan(run_begin));
}

// Follows the sequence numbers, as timeline::ReadTimeline does; a damaged chunk may come again.
bool StreamRollup::IsNew(const timeline::ChunkHeader& header, std::span<const uint8_t> chunk) {
  if (id_ && header.stream_id != *id_) return false;
  if (header.first_sequence > header.last_sequence) return true;  // context alone
  if (header.first_sequence <= last_sequence_) return false;
  if (header.first_sequence > last_sequence_ + 1) lacks_some_ = true;
  if (timeline::Crc32c(chunk.subspan(header.header_bytes)) == header.payload_crc) {
    last_sequence_ = header.last_sequence;
  }
  return true;
}

absl::Status StreamRollup::TakeRun(std::span<const uint8_t> bytes) {
  absl::Status taken;
  const auto read = timeline::ReadTimelineBytes(bytes, [&](const timeline::Entry& entry) {
    has_ended_ = std::holds_alternative<v1::Summary>(entry.record);
    taken = windows_->Add(entry);
    return taken;
  });
  if (!read.ok() && !taken.ok()) return taken;
  return absl::OkStatus();  // where nothing could be read there is no row
}

absl::Status StreamRollup::AddRow(size_t level, const Row& row) {
  const int64_t slice_ns = levels_[level].SliceNs();
  const auto slice = SliceOf(level, row.window_start_ns - row.window_start_ns % slice_ns);
  if (!slice.ok()) return slice.status();
  return (*slice)->rows->Add(row);
}

absl::StatusOr<StreamRollup::Slice*> StreamRollup::SliceOf(size_t level, int64_t begin_ns) {
  std::unique_ptr<Slice>& slice = open_[{level, begin_ns}];
  if (slice != nullptr) return slice.get();
  auto made = std::make_unique<Slice>();
  made->folder =
      absl::StrCat(place_.directory, "/.rollup/", levels_[level].name,
                   "/date=", Utc("%Y-%m-%d", begin_ns), "/", stream::HostPartitionOf(place_.agent));
  const std::string name = absl::StrCat(id_ ? stream::ToHex(*id_) : place_.stream, "-",
                                        Utc("%Y%m%dT%H%M%SZ", begin_ns), ".csv");
  made->path = absl::StrCat(made->folder, "/", name);
  made->part = absl::StrCat(made->folder, "/.", name, ".part");
  if (absl::Status status = files_.MakeDirectories(made->folder); !status.ok()) return status;
  absl::Status removed = files_.Remove(made->part);  // of a process that was killed
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  const bool goes_on = written_.contains({level, begin_ns});  // the clock went back
  if (goes_on) {
    if (absl::Status status = Reopen({level, begin_ns}, *made); !status.ok()) return status;
  }
  // Opened for each piece: slices of many streams are open at a time.
  made->rows = std::make_unique<RowText>(
      Format::kCsv,
      [this, part = made->part](std::string_view text) { return Write(part, text, false); },
      files_.SizeOf(made->part).ok());
  slice = std::move(made);
  return slice.get();
}

// Puts the rows that this reading has written into the part.
absl::Status StreamRollup::Reopen(const SliceKey& key, Slice& slice) {
  const auto unmerged = unmerged_.find(key);
  if (unmerged != unmerged_.end()) {
    return unmerged->second ? Write(slice.part, *unmerged->second, true) : absl::OkStatus();
  }
  const auto text = ContentOf(slice.path);
  if (!text.ok()) return text.status();
  return Write(slice.part, *text, true);
}

absl::Status StreamRollup::Write(const std::string& path, std::string_view text, bool must_be_new) {
  const auto file = files_.OpenToAppend(path, must_be_new);
  if (!file.ok()) return file.status();
  return (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

absl::StatusOr<std::string> StreamRollup::ContentOf(const std::string& path) const {
  constexpr size_t kPiece = size_t{256} << 10;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    const auto got = files_.ReadAt(
        path, before, std::span(reinterpret_cast<uint8_t*>(text.data()) + before, kPiece));
    if (!got.ok()) return got.status();
    text.resize(before + *got);
    if (*got < kPiece) return text;
  }
}

absl::Status StreamRollup::CommitUntil(int64_t realtime_ns) {
  for (auto it = open_.begin(); it != open_.end();) {
    const int64_t slice_ns = levels_[it->first.first].SliceNs();
    if (it->first.second + slice_ns > realtime_ns) {
      ++it;
      continue;
    }
    if (absl::Status status = Commit(it->first, *it->second); !status.ok()) return status;
    written_.insert(it->first);
    it = open_.erase(it);
  }
  return absl::OkStatus();
}

absl::Status StreamRollup::Commit(const SliceKey& key, Slice& slice) {
  if (absl::Status status = slice.rows->Finish(); !status.ok()) return status;
  const auto older = ContentOf(slice.path);
  if (!older.ok() && !absl::IsNotFound(older.status())) return older.status();
  if (older.ok()) {
    auto rows = ContentOf(slice.part);
    if (!rows.ok()) return rows.status();
    std::string merged = lacks_some_ ? MergeRows(*older, *rows) : *rows;
    const bool is_merged = merged != *rows;
    if (is_merged) {
      unmerged_[key].reset();
      if (unmerged_.size() <= kMostUnmerged) unmerged_[key] = *std::move(rows);
    }
    if (merged == *older) return files_.Remove(slice.part);
    if (is_merged) {
      if (absl::Status status = files_.Remove(slice.part); !status.ok()) return status;
      if (absl::Status status = Write(slice.part, merged, true); !status.ok()) return status;
    }
  }
  const auto file = files_.OpenToAppend(slice.part, false);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Sync();
  if (status.ok()) status = files_.Rename(slice.part, slice.path);
  if (status.ok()) status = files_.SyncDirectory(slice.folder);
  return status;
}

}  // namespace vcpulse::rollup

#include "monitor/rollup/store/stream_rollup.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "absl/strings/str_cat.h"
#include "monitor/rollup/store/derived_store.h"
#include "monitor/stream/disk/names.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::rollup {
namespace {

constexpr size_t kReadBytes = size_t{4} << 20;
constexpr int64_t kWindowsOfSlice = 60;

// The bytes of the whole chunks that `bytes` begins with, damage between them too. `wanted` becomes
// how many bytes are needed to go on where there is no whole one.
size_t WholeChunks(std::span<const uint8_t> bytes, size_t& wanted) {
  size_t whole = 0;
  while (whole < bytes.size()) {
    const auto rest = bytes.subspan(whole);
    const auto header = timeline::DecodeChunkHeader(rest);
    if (absl::IsOutOfRange(header.status())) {
      wanted = timeline::kMaxHeaderBytes;
      return whole;
    }
    if (!header.ok()) {  // damage: up to what may be the next chunk
      const auto next = std::ranges::search(rest.subspan(1), timeline::kChunkMagic);
      const auto passed = static_cast<size_t>(next.begin() - rest.begin());
      whole += next.empty() ? rest.size() : passed;
      continue;
    }
    const size_t chunk = size_t{header->header_bytes} + header->payload_bytes;
    if (chunk > rest.size()) {
      wanted = chunk;
      return whole;
    }
    whole += chunk;
  }
  return whole;
}

}  // namespace

int64_t StoredLevel::SliceNs() const { return std::min(kWindowsOfSlice * length_ns, kDay_ns); }

StreamRollup::StreamRollup(stream::Files& files, const std::vector<StoredLevel>& levels,
                           Place place)
    : files_(files), levels_(levels), place_(std::move(place)) {
  Begin();
}

std::string StreamRollup::Folder() const {
  return absl::StrCat(place_.directory, "/", place_.agent, "/", place_.stream);
}

void StreamRollup::Begin() {
  std::vector<int64_t> lengths_ns;
  lengths_ns.reserve(levels_.size());
  for (const StoredLevel& level : levels_) lengths_ns.push_back(level.length_ns);
  windows_ = std::make_unique<Windows>(
      lengths_ns, [this](size_t level, const Row& row) { return AddRow(level, row); });
  open_.clear();
  written_.clear();
  taken_.clear();
  first_row_ns_.reset();
  has_ended_ = false;
}

absl::StatusOr<bool> StreamRollup::Advance(int64_t realtime_ns) {
  absl::StatusOr<bool> news = TakeNews();
  if (!news.ok()) return news;
  if (*news) {
    grew_realtime_ns_ = realtime_ns;
    if (const auto latest_ns = windows_->over_until_ns()) {
      if (absl::Status status = CommitUntil(*latest_ns); !status.ok()) return status;
    }
    return true;
  }
  const bool is_silent = realtime_ns - grew_realtime_ns_ >= kSilence_ns;
  if (windows_ == nullptr || (!has_ended_ && !is_silent)) return false;
  if (absl::Status status = windows_->Finish(); !status.ok()) return status;
  windows_.reset();
  if (!taken_.empty()) {
    const auto bytes = files_.SizeOf(absl::StrCat(Folder(), "/", taken_.back().name));
    if (!bytes.ok()) return bytes.status();
    finished_bytes_ = *bytes;
  }
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
  const bool is_late = !std::ranges::equal(
      taken_, std::span(there).first(std::min(taken_.size(), there.size())), {}, &Taken::name);
  if (there.empty()) return false;
  bool is_more = is_late;
  if (windows_ == nullptr && !is_late) {  // it was taken for ended
    const auto bytes = files_.SizeOf(absl::StrCat(Folder(), "/", there.back()));
    if (!bytes.ok()) return bytes.status();
    is_more = taken_.size() != there.size() || *bytes != finished_bytes_;
    if (!is_more) return false;
  }
  if (is_more) {
    came_late_ = true;
    Begin();
  }
  if (taken_.empty()) {
    lacks_beginning_ = stream::SequenceOfFileName(there.front()) != 1u;
    taken_.push_back({.name = there.front()});
  }
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
  std::vector<uint8_t> bytes(kReadBytes);
  while (true) {
    const auto got = files_.ReadAt(path, taken.bytes, bytes);
    if (!got.ok()) return got.status();
    if (*got == 0) return false;
    const bool is_end = *got < bytes.size();
    size_t wanted = 0;
    size_t whole = WholeChunks(std::span(bytes).first(*got), wanted);
    if (whole == 0 && !is_end) {
      bytes.resize(std::max(wanted, 2 * bytes.size()));
      continue;
    }
    if (whole == 0 && is_newest) return false;  // it is being written
    if (whole == 0) whole = *got;               // torn for good
    bytes.resize(whole);
    absl::Status status = TakeChunks(bytes);
    if (!status.ok()) return status;
    taken.bytes += whole;
    return true;
  }
}

absl::Status StreamRollup::TakeChunks(const std::vector<uint8_t>& bytes) {
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
  if (!first_row_ns_) first_row_ns_ = row.window_start_ns;
  const int64_t slice_ns = levels_[level].SliceNs();
  const auto slice = SliceOf(level, row.window_start_ns - row.window_start_ns % slice_ns);
  if (!slice.ok()) return slice.status();
  return (*slice)->rows->Add(row);
}

absl::StatusOr<StreamRollup::Slice*> StreamRollup::SliceOf(size_t level, int64_t begin_ns) {
  std::unique_ptr<Slice>& slice = open_[{level, begin_ns}];
  if (slice != nullptr) return slice.get();
  auto made = std::make_unique<Slice>();
  made->folder = absl::StrCat(place_.directory, "/.rollup/", levels_[level].name,
                              "/date=", Utc("%Y-%m-%d", begin_ns), "/host=", place_.agent);
  const auto stream = stream::StreamOfFolder(place_.stream);
  const std::string name = absl::StrCat(stream ? stream::ToHex(*stream) : place_.stream, "-",
                                        Utc("%Y%m%dT%H%M%SZ", begin_ns), ".csv");
  made->path = absl::StrCat(made->folder, "/", name);
  made->part = absl::StrCat(made->folder, "/.", name, ".part");
  if (absl::Status status = files_.MakeDirectories(made->folder); !status.ok()) return status;
  absl::Status removed = files_.Remove(made->part);  // of a process that was killed
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  const bool goes_on = written_.contains({level, begin_ns});  // the clock went back
  if (goes_on) {
    if (absl::Status status = CopyTo(made->path, made->part); !status.ok()) return status;
  }
  // Opened for each piece: slices of many streams are open at a time.
  made->rows = std::make_unique<RowText>(
      Format::kCsv,
      [this, part = made->part](std::string_view text) -> absl::Status {
        const auto file = files_.OpenToAppend(part, false);
        if (!file.ok()) return file.status();
        return (*file)->Append(
            std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      },
      goes_on);
  slice = std::move(made);
  return slice.get();
}

absl::Status StreamRollup::CopyTo(const std::string& from, const std::string& to) {
  const auto file = files_.OpenToAppend(to, true);
  if (!file.ok()) return file.status();
  std::vector<uint8_t> bytes(kReadBytes);
  for (uint64_t at = 0;; at += bytes.size()) {
    const auto got = files_.ReadAt(from, at, bytes);
    if (!got.ok()) return got.status();
    if (absl::Status status = (*file)->Append(std::span(bytes).first(*got)); !status.ok()) {
      return status;
    }
    if (*got < bytes.size()) return absl::OkStatus();
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
  const auto same = IsSame(slice.part, slice.path);
  if (!same.ok() && !absl::IsNotFound(same.status())) return same.status();
  // What was made while the beginning was still there is better than what is left.
  const bool begins_before = first_row_ns_ && key.second <= *first_row_ns_;
  const bool is_better = !lacks_beginning_ || (came_late_ && !begins_before);
  const bool exists = same.ok();
  if (exists && (*same || !is_better)) return files_.Remove(slice.part);
  const auto file = files_.OpenToAppend(slice.part, false);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Sync();
  if (status.ok()) status = files_.Rename(slice.part, slice.path);
  if (status.ok()) status = files_.SyncDirectory(slice.folder);
  return status;
}

absl::StatusOr<bool> StreamRollup::IsSame(const std::string& a, const std::string& b) const {
  constexpr size_t kPiece = size_t{64} << 10;
  std::vector<uint8_t> of_a(kPiece);
  std::vector<uint8_t> of_b(kPiece);
  for (uint64_t at = 0;; at += kPiece) {
    const auto got_b = files_.ReadAt(b, at, of_b);
    if (!got_b.ok()) return got_b.status();
    const auto got_a = files_.ReadAt(a, at, of_a);
    if (!got_a.ok()) return got_a.status();
    if (*got_a != *got_b ||
        !std::equal(of_a.begin(), of_a.begin() + static_cast<ptrdiff_t>(*got_a), of_b.begin())) {
      return false;
    }
    if (*got_a < kPiece) return true;
  }
}

}  // namespace vcpulse::rollup

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/disk/spool_stream.h"

// What the spool takes in of the directory that it finds.
namespace vcpulse::stream {
namespace {

constexpr size_t kNumberDigits = 10;
constexpr char kMarkName[] = "/.written";
constexpr size_t kMaxMarkBytes = 512;

struct FolderName {
  uint64_t number = 0;
  timeline::StreamId stream{};
};

// "NUMBER-STREAMID"; nothing for folders of others.
std::optional<FolderName> ParseFolderName(const std::string& name) {
  if (name.size() <= kNumberDigits || name[kNumberDigits] != '-') return std::nullopt;
  const auto number = ParseNumber<uint64_t>(std::string_view(name).substr(0, kNumberDigits));
  const auto stream = StreamOfHex(name.substr(kNumberDigits + 1));
  if (!number || !stream) return std::nullopt;
  return FolderName{*number, *stream};
}

// A disk that fails now may be mended, and a file of a later release be sent by that one: to go on
// without it would tell the collector that its records are lost.
absl::Status Unreadable(const absl::Status& status, const std::string& path) {
  std::string what(status.message());
  if (what.find(path) == std::string::npos) what = absl::StrCat(path, ": ", what);
  return absl::DataLossError(
      absl::StrCat(what,
                   " (start again when it can be read; or move that file away, and its records "
                   "count as lost)"));
}

}  // namespace

absl::Status Spool::Recover() {
  const auto names = files_.List(options_.directory);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const auto folder = ParseFolderName(name);
    if (!folder) continue;
    const auto kind = files_.KindOf(absl::StrCat(options_.directory, "/", name));
    if (!kind.ok()) return kind.status();
    next_folder_ = std::max(next_folder_, folder->number + 1);
    if (*kind != Files::Kind::kDirectory) continue;
    if (absl::Status status = RecoverFolder(name, folder->stream); !status.ok()) return status;
  }
  static_cast<void>(files_.SyncDirectory(options_.directory));
  return MakeRoomOnDisk(0);
}

// After Recover. Where it cannot be said of the streams that were found it cannot be said of the
// spool until they are gone.
void Spool::TakeMark() {
  found_all_ = found_all_ && !options_.boot_id.empty();
  if (options_.boot_id.empty()) return;
  const std::string path = absl::StrCat(options_.directory, kMarkName);
  std::vector<uint8_t> bytes(kMaxMarkBytes);
  const auto got = files_.ReadAt(path, 0, bytes);
  const std::string mark(bytes.begin(),
                         bytes.begin() + static_cast<ptrdiff_t>(got.ok() ? *got : 0));
  found_all_ = found_all_ && (mark == kAllSynced || mark == options_.boot_id);
  if (found_all_ || streams_.empty()) {
    SetMark(options_.boot_id);
  } else {
    RemoveMark();
  }
}

void Spool::SetMark(const std::string& mark) {
  RemoveMark();
  const auto file = files_.OpenToAppend(absl::StrCat(options_.directory, kMarkName), true);
  const std::vector<uint8_t> bytes(mark.begin(), mark.end());
  is_marked_ = file.ok() && (*file)->Append(bytes).ok() && (*file)->Sync().ok() &&
               files_.SyncDirectory(options_.directory).ok();
  if (!is_marked_) RemoveMark();
}

void Spool::RemoveMark() {
  is_marked_ = false;
  static_cast<void>(files_.Remove(absl::StrCat(options_.directory, kMarkName)));
}

absl::Status Spool::RecoverFolder(const std::string& name, const timeline::StreamId& stream_id) {
  const std::string folder = absl::StrCat(options_.directory, "/", name);
  const auto names = files_.List(folder);
  if (!names.ok()) return names.status();
  // Two folders of one stream: the later one may go on where the earlier one ends.
  Stream* stream = Find(stream_id);
  bool is_damaged = false;
  std::optional<uint64_t> begin;  // the first record that was ever in these files
  for (const std::string& file : *names) {
    const auto sequence = SequenceOfFileName(file);
    if (!sequence) continue;
    if (!begin) begin = sequence;
    absl::Status status =
        RecoverSegment(folder, *sequence, *begin, &stream, stream_id, &is_damaged);
    if (!status.ok()) return status;
  }
  if (stream != nullptr && !stream->segments.empty()) {
    stream->folder = folder;
    static_cast<void>(files_.SyncDirectory(folder));
    return absl::OkStatus();
  }
  static_cast<void>(files_.RemoveDirectory(folder));  // it may hold files of others
  return absl::OkStatus();
}

// Makes `stream`, which begins with `begin_sequence`, with its first chunk.
absl::Status Spool::RecoverSegment(const std::string& folder, uint64_t name_sequence,
                                   uint64_t begin_sequence, Stream** stream,
                                   const timeline::StreamId& stream_id, bool* is_damaged) {
  Segment segment{.id = next_segment_++,
                  .path = absl::StrCat(folder, "/", FileNameOf(name_sequence))};
  const auto kind = files_.KindOf(segment.path);
  if (!kind.ok()) return kind.status();
  if (*kind != Files::Kind::kFile) return absl::OkStatus();
  const absl::StatusOr<ChunkList> list = ListChunks(files_, segment.path);
  if (!list.ok()) return Unreadable(list.status(), segment.path);
  uint64_t end = 0;
  bool is_any = false;
  for (const ChunkPlace& chunk : list->chunks) {
    if (chunk.offset != end) *is_damaged = true;
    end = chunk.offset + chunk.bytes();
    const timeline::ChunkHeader& header = chunk.header;
    const uint64_t next = *stream == nullptr ? name_sequence : (*stream)->next_sequence;
    if (header.stream_id != stream_id || header.first_sequence > header.last_sequence ||
        header.first_sequence < std::max(next, name_sequence) ||
        header.last_sequence == std::numeric_limits<uint64_t>::max()) {
      *is_damaged = true;
      continue;
    }
    if (*stream == nullptr) {
      streams_.push_back(std::make_unique<Stream>(stream_id, begin_sequence, &held_));
      *stream = streams_.back().get();
    }
    (*stream)->Push(
        {.first_sequence = header.first_sequence,
         .last_sequence = header.last_sequence,
         .first_mono_ns = header.first_mono_ns,
         .last_mono_ns = header.last_mono_ns,
         .bytes = static_cast<uint32_t>(chunk.bytes()),
         .segment = segment.id,
         .offset = chunk.offset},
        *is_damaged ? v1::LostRecords::REASON_SPOOL_DAMAGED : v1::LostRecords::REASON_NOT_HELD);
    *is_damaged = false;
    segment.last_sequence = header.last_sequence;
    is_any = true;
  }
  if (!is_any) {
    *is_damaged = true;
    found_all_ = false;
    const absl::Status status = files_.Remove(segment.path);
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }
  segment.bytes = list->file_bytes;
  auto file = files_.OpenToAppend(segment.path, false);
  if (!file.ok()) return file.status();
  if (end < list->file_bytes) {
    *is_damaged = true;
    found_all_ = false;
    if (absl::Status status = (*file)->Truncate(end); !status.ok()) return status;
    segment.bytes = end;
  }
  // Whoever wrote it may have died before he could. What this cannot save is found out later.
  static_cast<void>((*file)->Sync());
  disk_bytes_ += segment.bytes;
  (*stream)->segments.push_back(std::move(segment));
  return absl::OkStatus();
}

}  // namespace vcpulse::stream

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/disk/stream_store.h"

// What a StreamStore does with the files that it finds.
namespace vcpulse::stream {
namespace {

// The names of the timelines of a stream, newest first.
absl::StatusOr<std::vector<std::string>> FilesOfStream(Files& files, const std::string& directory) {
  absl::StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names.status();
  std::erase_if(*names, [](const std::string& name) { return !SequenceOfFileName(name); });
  std::ranges::reverse(*names);
  return names;
}

absl::Status CopyBytes(Files& files, const std::string& path, uint64_t from, uint64_t to,
                       AppendFile& copy) {
  std::vector<uint8_t> bytes;
  while (from < to) {
    constexpr uint64_t kAtOnce = 1u << 20;
    bytes.resize(std::min(kAtOnce, to - from));
    const auto got = files.ReadAt(path, from, bytes);
    if (!got.ok()) return got.status();
    if (*got == 0) return absl::DataLossError(absl::StrCat(path, " has become shorter"));
    if (absl::Status status = copy.Append(std::span(bytes).first(*got)); !status.ok()) {
      return status;
    }
    from += *got;
  }
  return absl::OkStatus();
}

// What of a file stays.
struct Kept {
  uint64_t bytes = 0;          // from its start
  uint64_t damaged_bytes = 0;  // among them
  uint64_t settled = 0;        // last sequence that its chunks settle; 0 without a chunk
};

// `first` is the sequence in the file's name. Where the agent holds the records of a damage, it was
// not told of anything behind that either.
Kept KeptOf(const ChunkList& list, const timeline::StreamId& stream, uint64_t first,
            uint64_t first_held) {
  Kept kept;
  for (const ChunkPlace& chunk : list.chunks) {
    if (chunk.header.stream_id != stream) continue;  // a chunk within a damaged one
    const uint64_t damaged = chunk.offset - kept.bytes;
    if (damaged > 0 && std::max(first, kept.settled + 1) >= first_held) break;
    kept.damaged_bytes += damaged;
    kept.bytes = chunk.offset + chunk.bytes();
    kept.settled = std::max(kept.settled, chunk.settles_to);
  }
  return kept;
}

}  // namespace

absl::Status StreamStore::Recover(uint64_t first_held, int64_t realtime_ns) {
  const auto names = FilesOfStream(files_, directory_);
  if (!names.ok()) return names.status();
  if (names->empty()) return absl::OkStatus();
  // Where nothing at all is left, the newest name still tells how far the stream had come.
  written_ = std::max<uint64_t>(*SequenceOfFileName(names->front()), 1) - 1;
  for (const std::string& name : *names) {
    const absl::StatusOr<bool> has_chunks =
        RecoverFile(name, name == names->front(), first_held, realtime_ns);
    if (!has_chunks.ok()) return has_chunks.status();
    if (*has_chunks) break;
  }
  if (absl::Status status = SyncFileAndFolders(); !status.ok()) return status;
  names_unsynced_ = false;
  durable_bytes_ = file_->size();
  durable_ = written_;
  return absl::OkStatus();
}

// Cuts off what is of no use and syncs the file. Whether it holds a chunk, which then says how far
// the stream has come.
absl::StatusOr<bool> StreamStore::RecoverFile(const std::string& name, bool is_newest,
                                              uint64_t first_held, int64_t realtime_ns) {
  const std::string path = absl::StrCat(directory_, "/", name);
  const absl::StatusOr<ChunkList> list = ListChunks(files_, path);
  if (!list.ok()) return list.status();
  absl::StatusOr<std::unique_ptr<AppendFile>> file = files_.OpenToAppend(path, false);
  if (!file.ok()) return file.status();
  const Kept kept = KeptOf(*list, stream_, *SequenceOfFileName(name), first_held);
  const auto note = [&](uint64_t bytes, const char* what) {
    if (bytes == 0) return;
    absl::StrAppend(&notice_, notice_.empty() ? "" : "; ", path, ": ", Plural(bytes, "byte"), what);
  };
  note(list->file_bytes - kept.bytes, " at its end were not whole and are cut off");
  note(kept.damaged_bytes, " are damaged, whole chunks behind them are kept");
  if (kept.bytes < list->file_bytes) {
    if (absl::Status status = (*file)->Truncate(kept.bytes); !status.ok()) return status;
  }
  if (!(*file)->Sync().ok()) {
    file = WriteAnew(path, kept.bytes);
    if (!file.ok()) return file.status();
  }
  if (kept.bytes > 0) written_ = kept.settled;
  if (is_newest) {
    file_ = *std::move(file);
    path_ = path;
    if (kept.bytes > 0) {
      // Not now: an agent that comes again and again would keep the file open for ever.
      const auto begun_ns = files_.BegunAt_ns(path);
      if (!begun_ns.ok()) return begun_ns.status();
      file_begun_ns_ = std::min(*begun_ns, realtime_ns);
    }
  }
  return kept.bytes > 0;
}

// Replaces a file that could not be synced by a copy. The kernel may have dropped what it could not
// write and still show it, and a second sync would say nothing of it.
absl::StatusOr<std::unique_ptr<AppendFile>> StreamStore::WriteAnew(const std::string& path,
                                                                   uint64_t bytes) {
  const std::string copy_path = path + ".new";
  auto copy = files_.OpenToAppend(copy_path, false);
  if (!copy.ok()) return copy.status();
  absl::Status status = (*copy)->Truncate(0);  // one may be left of an earlier time
  if (status.ok()) status = CopyBytes(files_, path, 0, bytes, **copy);
  if (status.ok()) status = (*copy)->Sync();
  if (status.ok()) status = files_.Rename(copy_path, path);
  if (status.ok()) status = files_.SyncDirectory(directory_);
  if (!status.ok()) return status;
  return copy;
}

}  // namespace vcpulse::stream

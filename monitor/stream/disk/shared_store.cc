#include "monitor/stream/disk/shared_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/names.h"

namespace vcpulse::stream {
namespace {

// Names that are taken before a new file finds a free one: chunks of the same first record.
constexpr uint64_t kMostTakenNames = 100;

bool HasRecords(const timeline::ChunkHeader& header) {
  return header.first_sequence <= header.last_sequence;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedStore>> SharedStore::Open(
    Files& files, std::string directory, const StreamStore::Options& options) {
  std::unique_ptr<SharedStore> store(new SharedStore(files, std::move(directory), options));
  const auto names = files.List(store->directory_);
  if (absl::IsNotFound(names.status())) return store;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!SequenceOfFileName(name)) continue;
    if (absl::Status status = store->Recover(name); !status.ok()) return status;
  }
  if (absl::Status status = files.SyncDirectory(store->directory_); !status.ok()) return status;
  return store;
}

absl::Status SharedStore::Recover(const std::string& name) {
  const std::string path = absl::StrCat(directory_, "/", name);
  const absl::StatusOr<ChunkList> list = ListChunks(files_, path);
  if (!list.ok()) return list.status();
  for (const ChunkPlace& chunk : list->chunks) Note(chunk.header, chunk.settles_to);
  const uint64_t end =
      list->chunks.empty() ? 0 : list->chunks.back().offset + list->chunks.back().bytes();
  auto file = files_.OpenToAppend(path, false);
  if (!file.ok()) return file.status();
  if (end < list->file_bytes) {
    absl::StrAppend(&notice_, notice_.empty() ? "" : "; ", path, ": ",
                    Plural(list->file_bytes - end, "byte"),
                    " at its end were not whole and are cut off");
    if (absl::Status status = (*file)->Truncate(end); !status.ok()) return status;
  }
  if (absl::Status status = (*file)->Sync(); !status.ok()) return status;
  const auto begun_ns = files_.BegunAt_ns(path);
  if (!begun_ns.ok()) return begun_ns.status();
  path_ = path;  // of the last one, the next chunk goes on there
  file_begun_ns_ = *begun_ns;
  durable_bytes_ = end;
  return absl::OkStatus();
}

void SharedStore::Note(const timeline::ChunkHeader& header, uint64_t settles_to) {
  if (HasRecords(header)) {
    records_.Add(header.first_sequence, header.last_sequence);
  } else {
    lost_.Add(header.first_sequence, settles_to);
  }
}

bool SharedStore::Holds(const timeline::ChunkHeader& header, uint64_t settles_to) const {
  if (HasRecords(header)) return records_.Contains(header.first_sequence, header.last_sequence);
  for (uint64_t next = header.first_sequence; next <= settles_to;) {
    const std::optional<uint64_t> end = std::max(records_.EndOf(next), lost_.EndOf(next));
    if (!end) return false;
    next = *end + 1;
  }
  return true;
}

// The file that the next chunk goes to.
absl::Status SharedStore::OpenFile(uint64_t first_sequence, int64_t realtime_ns) {
  if (file_ == nullptr && !path_.empty() && !files_.SizeOf(path_).ok()) path_.clear();
  if (file_ == nullptr && !path_.empty()) {
    auto file = files_.OpenToAppend(path_, false);
    if (file.ok() && (*file)->size() != durable_bytes_) {
      path_.clear();  // somebody has changed it
    } else if (!file.ok()) {
      return file.status();
    } else {
      file_ = *std::move(file);
    }
  }
  file_begun_ns_ = std::min(file_begun_ns_, realtime_ns);  // the clock was set back
  const bool is_due = file_ == nullptr || file_->size() >= options_.rotate_bytes ||
                      realtime_ns - file_begun_ns_ >= options_.rotate_ns;
  return is_due ? BeginFile(first_sequence, realtime_ns) : absl::OkStatus();
}

absl::Status SharedStore::BeginFile(uint64_t first_sequence, int64_t realtime_ns) {
  if (file_ != nullptr) {
    if (absl::Status status = Sync(); !status.ok()) return status;
    file_.reset();
  }
  if (absl::Status status = files_.MakeDirectories(directory_); !status.ok()) return status;
  for (uint64_t i = 0; i < kMostTakenNames; ++i) {
    const uint64_t number = first_sequence + i;
    const std::string path = absl::StrCat(directory_, "/", FileNameOf(number));
    if (files_.SizeOf(path).ok()) continue;
    auto file = files_.OpenToAppend(path, true);
    if (!file.ok()) return file.status();
    file_ = *std::move(file);
    path_ = path;
    file_begun_ns_ = realtime_ns;
    durable_bytes_ = 0;
    names_unsynced_ = true;
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(directory_, ": all names from ", FileNameOf(first_sequence), " on are taken"));
}

absl::Status SharedStore::Append(const timeline::ChunkHeader& header, uint64_t settles_to,
                                 std::span<const uint8_t> chunk, int64_t realtime_ns) {
  if (!broken_.ok()) return broken_;
  if (absl::Status status = OpenFile(header.first_sequence, realtime_ns); !status.ok()) {
    return status;
  }
  if (absl::Status status = file_->Append(chunk); !status.ok()) return status;
  Note(header, settles_to);
  return absl::OkStatus();
}

absl::Status SharedStore::Sync() {
  if (!broken_.ok()) return broken_;
  if (file_ == nullptr || (file_->size() == durable_bytes_ && !names_unsynced_)) {
    return absl::OkStatus();
  }
  absl::Status status = file_->Sync();
  const std::string agent = ParentOf(directory_);
  const std::string folders[] = {directory_, agent, ParentOf(agent)};
  for (const std::string& folder : folders) {
    if (!status.ok() || !names_unsynced_) break;
    status = files_.SyncDirectory(folder);
  }
  if (!status.ok()) {
    GiveUpUnsynced(status);
    return status;
  }
  durable_bytes_ = file_->size();
  names_unsynced_ = false;
  return absl::OkStatus();
}

absl::Status SharedStore::NoteSynced() {
  if (!broken_.ok()) return broken_;
  if (file_ == nullptr) return absl::OkStatus();
  if (const auto size = files_.SizeOf(path_); !size.ok()) return size.status();
  durable_bytes_ = file_->size();
  names_unsynced_ = false;
  return absl::OkStatus();
}

void SharedStore::GiveUpUnsynced(const absl::Status& why) {
  broken_ = why;
  // Where that fails too, Open reads what is there.
  if (file_ != nullptr) static_cast<void>(file_->Truncate(durable_bytes_));
}

void SharedStore::Rest() {
  if (file_ == nullptr || names_unsynced_ || file_->size() != durable_bytes_) return;
  file_.reset();
}

}  // namespace vcpulse::stream

#include "monitor/timeline/folder_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "kvm/base/text.h"
#include "monitor/timeline/chunk_scanner.h"
#include "monitor/timeline/input.h"

namespace vcpulse::timeline {
namespace {

class FolderSource final : public ByteSource {
 public:
  FolderSource(std::string directory, const std::vector<std::string>& files)
      : directory_(std::move(directory)) {
    for (const std::string& file : files) parts_.push_back({.path = file});
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override;
  void Forget(uint64_t /*offset*/) override {}

 private:
  // A file and where it begins in the whole. How long it is gets fixed when the reading leaves it
  // for the next one: until then it may grow.
  struct Part {
    std::string path;
    uint64_t begin = 0;
    std::optional<uint64_t> bytes{};
  };

  // The part that holds `offset`, or else the last one whose begin is known.
  size_t PartOf(uint64_t offset) const;
  absl::Status OpenPart(size_t i);
  absl::StatusOr<size_t> ReadPart(size_t i, uint64_t offset, std::span<uint8_t> out);
  // Whether another part comes behind it, which then begins where it ends now.
  absl::StatusOr<bool> EndPart(size_t i);

  const std::string directory_;
  std::vector<Part> parts_;
  size_t begun_ = 1;                   // parts whose begin is known
  std::optional<size_t> open_part_{};  // of fd_
  Fd fd_;                              // not valid: the file has gone
};

absl::StatusOr<size_t> FolderSource::ReadAt(uint64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    const uint64_t at = offset + done;
    const size_t i = PartOf(at);
    const absl::StatusOr<size_t> got = ReadPart(i, at - parts_[i].begin, out.subspan(done));
    if (!got.ok()) return got.status();
    done += *got;
    if (*got > 0) continue;
    if (parts_[i].bytes && at < parts_[i].begin + *parts_[i].bytes) {
      return absl::DataLossError(
          absl::StrCat(parts_[i].path, " has become shorter while it was read"));
    }
    const absl::StatusOr<bool> more = EndPart(i);
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  return done;
}

size_t FolderSource::PartOf(uint64_t offset) const {
  size_t i = begun_ - 1;
  while (parts_[i].begin > offset) --i;
  return i;
}

absl::Status FolderSource::OpenPart(size_t i) {
  if (open_part_ == i) return absl::OkStatus();
  fd_ = Fd(::open(parts_[i].path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // One that was removed since is like an empty one.
  if (!fd_.valid() && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", parts_[i].path));
  }
  open_part_ = i;
  return absl::OkStatus();
}

absl::StatusOr<size_t> FolderSource::ReadPart(size_t i, uint64_t offset, std::span<uint8_t> out) {
  const Part& part = parts_[i];
  if (part.bytes)
    out = out.first(std::min<uint64_t>(out.size(), *part.bytes - std::min(*part.bytes, offset)));
  if (absl::Status status = OpenPart(i); !status.ok()) return status;
  if (!fd_.valid() || out.empty()) return 0;
  while (true) {
    const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", part.path));
    }
  }
}

absl::StatusOr<bool> FolderSource::EndPart(size_t i) {
  if (i + 1 < begun_) return true;
  if (i + 1 == parts_.size()) {
    const absl::StatusOr<std::vector<std::string>> files = TimelinesIn(directory_);
    if (!files.ok()) return files.status();
    const std::string last = parts_.back().path;
    for (const std::string& file : *files) {
      if (file > last) parts_.push_back({.path = file});
    }
    if (i + 1 == parts_.size()) return false;
  }
  Part& part = parts_[i];
  struct stat info{};
  if (fd_.valid() && ::fstat(fd_.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", part.path));
  }
  part.bytes = static_cast<uint64_t>(info.st_size);
  parts_[i + 1].begin = part.begin + *part.bytes;
  ++begun_;
  return true;
}

bool IsPlain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != 0x7f; });
}

// Directories below that hold timelines, to one of which somebody may have meant to point.
void FindBelow(const std::string& directory, int levels, std::vector<std::string>& found) {
  std::error_code error;
  std::vector<std::string> folders;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (it->symlink_status(error).type() != std::filesystem::file_type::directory) continue;
    if (IsPlain(it->path())) folders.push_back(it->path());
  }
  std::ranges::sort(folders);
  for (const std::string& folder : folders) {
    const auto files = TimelinesIn(folder);
    if (files.ok() && !files->empty()) {
      found.push_back(folder);
    } else if (levels > 1) {
      FindBelow(folder, levels - 1, found);
    }
  }
}

std::string WhereTheyAre(const std::vector<std::string>& folders) {
  if (folders.empty()) return "";
  const std::string list = Listed(folders, kShownRecordings);
  return absl::StrCat("; there are some in ", list,
                      folders.size() > 1 ? ": name one of these" : "");
}

// Whether, one behind the other, the files go back in the sequence numbers of their one recording.
// Reads headers alone; of what cannot be read the reading says why.
bool GoBack(const std::vector<std::string>& files) {
  std::optional<StreamId> stream;
  std::optional<uint64_t> last;
  bool goes_back = false;
  for (const std::string& file : files) {
    const auto source = OpenByteSource(file);
    if (!source.ok()) return false;
    std::vector<Damage> ignored;
    ChunkScanner scanner(source->get(), &ignored);
    while (true) {
      const auto found = scanner.Next();
      if (!found.ok()) return false;
      if (!found->has_value()) break;
      const ChunkHeader& header = (*found)->header;
      if (stream && *stream != header.stream_id) return false;  // several recordings
      stream = header.stream_id;
      if (header.first_sequence <= header.last_sequence) {
        goes_back = goes_back || (last && header.first_sequence <= *last);
        last = std::max(last.value_or(0), header.last_sequence);
      }
      if (!scanner.Skip(**found).ok()) return false;
    }
  }
  return goes_back;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TimelinesIn(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  std::filesystem::directory_iterator it(directory, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->path().extension() == ".vpt" && it->is_regular_file(gone)) files.push_back(it->path());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read directory ", directory));
  }
  std::ranges::sort(files);
  return files;
}

std::optional<StreamId> StreamOf(const std::string& file) {
  const auto source = OpenByteSource(file);
  if (!source.ok()) return std::nullopt;
  std::vector<Damage> ignored;
  const auto found = ChunkScanner(source->get(), &ignored).Next();
  if (!found.ok() || !found->has_value()) return std::nullopt;
  return (*found)->header.stream_id;
}

std::vector<std::string> RecordingsOf(const std::vector<std::string>& files) {
  struct Recording {
    StreamId stream{};
    std::string first_file;
    size_t files = 0;
  };
  std::vector<Recording> recordings;
  for (const std::string& file : files) {
    const std::optional<StreamId> stream = StreamOf(file);
    if (!stream) continue;
    auto known = std::ranges::find(recordings, *stream, &Recording::stream);
    if (known == recordings.end()) {
      known = recordings.insert(known, {.stream = *stream, .first_file = file});
    }
    ++known->files;
  }
  std::vector<std::string> names;
  names.reserve(recordings.size());
  for (const Recording& each : recordings) {
    names.push_back(each.files == 1 ? each.first_file
                                    : absl::StrCat(each.first_file, " (first of ", each.files,
                                                   " files, which `vcpulse merge` joins)"));
  }
  return names;
}

absl::Status CheckOneRecording(const std::string& directory) {
  const auto files = TimelinesIn(directory);
  if (!files.ok()) return files.status();
  const std::vector<std::string> recordings = RecordingsOf(*files);
  if (recordings.size() < 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(directory, " holds ", recordings.size(),
                   " separate recordings, and one is read at a time: name one of ",
                   Listed(recordings, kShownRecordings)));
}

absl::StatusOr<std::vector<std::string>> PartsIn(const std::string& directory) {
  auto files = TimelinesIn(directory);
  if (files.ok() && files->empty()) {
    constexpr int kLevels = 2;  // DIR/AGENT/STREAM of a collector
    std::vector<std::string> below;
    FindBelow(directory, kLevels, below);
    return absl::InvalidArgumentError(absl::StrCat(
        directory, " is a directory that holds no timeline (*.vpt)", WhereTheyAre(below)));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFolderSource(const std::string& directory) {
  const auto files = PartsIn(directory);
  if (!files.ok()) return files.status();
  if (GoBack(*files)) return OpenJoinedSource(*files);
  return std::make_unique<FolderSource>(directory, *files);
}

}  // namespace vcpulse::timeline

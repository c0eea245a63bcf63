#include "monitor/follow/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::follow {
namespace {

absl::Status ErrorOf(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", Printable(path)));
}

absl::StatusOr<Fd> OpenFile(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrorOf(path);
  return fd;
}

// As many bytes as there are.
absl::StatusOr<size_t> ReadAt(const Fd& fd, uint64_t offset, std::span<uint8_t> out) {
  size_t got = 0;
  while (got < out.size()) {
    const ssize_t n =
        ::pread(fd.get(), out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

// The header of the chunk that begins there. OutOfRange: not whole yet, DataLoss: it is none.
absl::StatusOr<timeline::ChunkHeader> HeaderAt(const Fd& fd, uint64_t offset) {
  std::array<uint8_t, timeline::kMaxHeaderBytes> bytes;
  const auto got = ReadAt(fd, offset, bytes);
  if (!got.ok()) return got.status();
  return timeline::DecodeChunkHeader(std::span(bytes).first(*got));
}

// Header and payload. OutOfRange: not whole yet, DataLoss: damaged.
absl::Status ChunkAt(const Fd& fd, uint64_t offset, std::vector<uint8_t>& chunk) {
  const auto header = HeaderAt(fd, offset);
  if (!header.ok()) return header.status();
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot read");
  // Before memory is taken for it.
  const uint64_t bytes = uint64_t{header->header_bytes} + header->payload_bytes;
  if (offset + bytes > static_cast<uint64_t>(info.st_size)) {
    return absl::OutOfRangeError("the chunk is not whole yet");
  }
  chunk.resize(bytes);
  const auto got = ReadAt(fd, offset, chunk);
  if (!got.ok()) return got.status();
  if (*got < bytes) return absl::OutOfRangeError("the chunk is not whole yet");
  const auto payload = std::span<const uint8_t>(chunk).subspan(header->header_bytes);
  if (timeline::Crc32c(payload) != header->payload_crc) {
    return absl::DataLossError("the chunk does not match its checksum");
  }
  return absl::OkStatus();
}

absl::Status Named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(Printable(path), ": ", status.message()));
}

}  // namespace

absl::Status GrowingFile::ReadNew(const Sink& sink) {
  absl::Status taken;  // of the sink, as it is
  const absl::Status status = TakeNew([&](const Fd& fd, uint64_t) {
    if (absl::Status read = ReadNext(fd); !read.ok()) return read;
    offset_ += chunk_.size();
    taken = sink(chunk_);
    return taken.ok() ? absl::OkStatus() : absl::CancelledError("the sink takes no more");
  });
  return taken.ok() ? status : taken;
}

absl::Status GrowingFile::ListNew(const PlaceSink& sink) {
  return TakeNew([&](const Fd& fd, uint64_t size) {
    const auto header = HeaderAt(fd, offset_);
    if (!header.ok()) return header.status();
    const uint64_t end = offset_ + header->header_bytes + header->payload_bytes;
    if (end > size) return absl::OutOfRangeError("the chunk is not whole yet");
    sink(offset_, *header);
    offset_ = end;
    return absl::OkStatus();
  });
}

absl::Status GrowingFile::TakeNew(const TakeNext& take_next) {
  struct stat info{};
  if (::stat(path_.c_str(), &info) != 0) return ErrorOf(path_);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (inode_ != 0 && inode_ != info.st_ino) {
    offset_ = seen_bytes_ = searched_ = 0;
    ++replaced_;
  }
  if (inode_ == info.st_ino && size == seen_bytes_) return absl::OkStatus();
  inode_ = info.st_ino;
  // A torn end may be cut off by whoever writes it.
  offset_ = std::min(offset_, size);
  if (size < seen_bytes_) searched_ = 0;
  const auto fd = OpenFile(path_);
  if (!fd.ok()) return fd.status();
  while (true) {
    const absl::Status status = take_next(*fd, size);
    if (status.ok()) continue;
    if (absl::IsOutOfRange(status)) break;
    if (!absl::IsDataLoss(status)) return Named(status, path_);
    const auto passed = PassOverDamage(*fd);
    if (!passed.ok()) return Named(passed.status(), path_);
    if (!*passed) break;
  }
  seen_bytes_ = size;
  return absl::OkStatus();
}

absl::Status GrowingFile::ReadNext(const Fd& fd) {
  const auto header = HeaderAt(fd, offset_);
  if (!header.ok()) return header.status();
  // It may be good once it is read again: some network file systems show a size before the bytes.
  const bool is_new = searched_ <= offset_;
  if (is_new && !vain_.Affords(offset_, header->payload_bytes)) {
    return absl::DataLossError(timeline::kTooMuchDamage);
  }
  absl::Status status = ChunkAt(fd, offset_, chunk_);
  if (is_new && absl::IsDataLoss(status)) vain_.Note(header->payload_bytes);
  return status;
}

absl::StatusOr<bool> GrowingFile::PassOverDamage(const Fd& fd) {
  const auto& magic = timeline::kChunkMagic;
  constexpr size_t kMaxWindowBytes = 64u << 10;
  std::vector<uint8_t> window(1u << 10);
  uint64_t from = std::max(searched_, offset_ + 1);
  std::optional<uint64_t> cut_off;  // the first header that is not whole yet
  while (true) {
    const auto got = ReadAt(fd, from, window);
    if (!got.ok()) return got.status();
    const auto end = window.begin() + static_cast<ptrdiff_t>(*got);
    for (auto hit = std::search(window.begin(), end, magic.begin(), magic.end()); hit != end;
         hit = std::search(hit + 1, end, magic.begin(), magic.end())) {
      const uint64_t at = from + static_cast<uint64_t>(hit - window.begin());
      const auto header = HeaderAt(fd, at);
      if (absl::IsOutOfRange(header.status()) && !cut_off) cut_off = at;
      if (!header.ok()) continue;
      damaged_bytes_ += at - offset_;
      offset_ = at;
      return true;
    }
    const bool ended = *got < window.size();
    from += *got - std::min(*got, magic.size() - 1);
    searched_ = cut_off.value_or(from);
    if (ended) return false;
    window.resize(std::min(2 * window.size(), kMaxWindowBytes));
  }
}

absl::Status GrowingFile::CheckBeginning() const {
  const auto fd = OpenFile(path_);
  if (!fd.ok()) return fd.status();
  std::array<uint8_t, timeline::kChunkMagic.size()> bytes{};
  const auto got = ReadAt(*fd, 0, bytes);
  if (!got.ok()) return Named(got.status(), path_);
  if (std::ranges::equal(std::span(bytes).first(*got),
                         std::span(timeline::kChunkMagic).first(*got))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(path_), " does not begin as a vcpulse timeline"));
}

absl::StatusOr<GrowingFile::Places> GrowingFile::ListChunks() const {
  const auto fd = OpenFile(path_);
  if (!fd.ok()) return fd.status();
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0) return ErrorOf(path_);
  Places places;
  while (true) {
    const auto header = HeaderAt(*fd, places.end);
    if (!header.ok()) break;
    const uint64_t end = places.end + header->header_bytes + header->payload_bytes;
    if (end > static_cast<uint64_t>(info.st_size)) break;
    places.chunks.push_back(places.end);
    places.end = end;
  }
  return places;
}

absl::StatusOr<std::vector<uint8_t>> GrowingFile::ReadChunk(uint64_t offset) const {
  const auto fd = OpenFile(path_);
  if (!fd.ok()) return fd.status();
  std::vector<uint8_t> chunk;
  if (absl::Status status = ChunkAt(*fd, offset, chunk); !status.ok()) {
    return Named(status, path_);
  }
  return chunk;
}

}  // namespace vcpulse::follow

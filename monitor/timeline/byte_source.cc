#include "monitor/timeline/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/fd.h"
#include "monitor/core/check.h"
#include "monitor/timeline/folder_source.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::timeline {
namespace {

// Calls `read_some(buffer, length, already)` until `out` is full, the end or an error (errno).
template <typename ReadSome>
absl::StatusOr<size_t> ReadFully(std::span<uint8_t> out, const std::string& name,
                                 const ReadSome& read_some) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = read_some(out.data() + done, out.size() - done, done);
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

class FileSource final : public ByteSource {
 public:
  FileSource(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    return ReadFully(out, name_, [&](uint8_t* to, size_t length, size_t done) {
      return ::pread(fd_.get(), to, length, static_cast<off_t>(offset + done));
    });
  }
  void Forget(uint64_t /*offset*/) override {}

 private:
  const Fd fd_;
  const std::string name_;
};

class PipeSource final : public ByteSource {
 public:
  PipeSource(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    VCPULSE_CHECK(offset >= start_, "read of what was forgotten");
    if (absl::Status status = ReadUpTo(offset + out.size()); !status.ok()) return status;
    const uint64_t end = start_ + window_.size();
    if (offset >= end) return 0;
    const auto length = static_cast<size_t>(std::min<uint64_t>(out.size(), end - offset));
    std::copy_n(window_.begin() + static_cast<ptrdiff_t>(offset - start_), length, out.begin());
    return length;
  }

  // Moves what is left only where that is less than what goes, so that each byte is moved once.
  void Forget(uint64_t offset) override {
    const uint64_t count = std::min<uint64_t>(window_.size(), offset - std::min(offset, start_));
    if (count < window_.size() / 2) return;
    window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(count));
    start_ += count;
  }

 private:
  // Piece by piece: who asks may ask for more than there is.
  absl::Status ReadUpTo(uint64_t wanted_end) {
    constexpr size_t kPieceBytes = 64u << 10;
    while (!ended_ && start_ + window_.size() < wanted_end) {
      const size_t old_size = window_.size();
      const auto piece =
          static_cast<size_t>(std::min<uint64_t>(wanted_end - (start_ + old_size), kPieceBytes));
      window_.resize(old_size + piece);
      const absl::StatusOr<size_t> got = ReadFully(
          std::span(window_).subspan(old_size), name_,
          [&](uint8_t* to, size_t length, size_t) { return ::read(fd_.get(), to, length); });
      window_.resize(old_size + got.value_or(0));
      if (!got.ok()) return got.status();
      ended_ = *got < piece;
    }
    return absl::OkStatus();
  }

  const Fd fd_;
  const std::string name_;
  uint64_t start_ = 0;           // offset of window_[0] in the stream
  std::vector<uint8_t> window_;  // what was read and not yet forgotten
  bool ended_ = false;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset >= bytes_.size()) return 0;
    const auto from = bytes_.subspan(static_cast<size_t>(offset));
    const size_t length = std::min(from.size(), out.size());
    std::copy_n(from.begin(), length, out.begin());
    return length;
  }
  void Forget(uint64_t /*offset*/) override {}

 private:
  const std::span<const uint8_t> bytes_;
};

}  // namespace

std::vector<Damage> ByteSource::Skipped() const { return {}; }

absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path;
  Fd fd(standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                       : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
  }
  if (S_ISDIR(info.st_mode)) return OpenFolderSource(path);
  // A shell may have moved the position of its standard input: that one is read as it comes.
  if (S_ISREG(info.st_mode) && !standard_input) {
    return std::make_unique<FileSource>(std::move(fd), name);
  }
  return std::make_unique<PipeSource>(std::move(fd), name);
}

std::unique_ptr<ByteSource> NewMemorySource(std::span<const uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

}  // namespace vcpulse::timeline

#include "kvm/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace vcpulse {
namespace {

absl::Status WriteError(const std::string& name, int error) {
  const std::string advice = error == ENOSPC ? " (free some space or choose another file)" : "";
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot write ", name, advice));
  return error == EPIPE ? absl::CancelledError(status.message()) : status;
}

// Whoever writes a file holds its lock, whatever name it has by now.
bool IsBeingWritten(const std::string& path) {
  const Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return other.valid() && ::flock(other.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// A new file beside `path`, whose name becomes `temporary`. errno where there is none.
Fd NewFileBeside(const std::string& path, std::string& temporary) {
  constexpr int kMostNames = 1000;  // of this process, or left by one that was killed
  Fd fd;
  for (int i = 0; i < kMostNames && !fd.valid(); ++i) {
    temporary = absl::StrCat(path, ".", getpid(), ".", i, ".new");
    fd = Fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd.valid() && errno != EEXIST) return fd;
  }
  if (fd.valid()) static_cast<void>(::flock(fd.get(), LOCK_EX | LOCK_NB));  // nobody else has it
  return fd;
}

bool IsOtherThanRegular(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

}  // namespace

OutputFile::OutputFile(std::string path, std::string temporary, Appears appears, Fd fd)
    : name_(path == "-" ? "standard output" : path),
      path_(std::move(path)),
      temporary_(std::move(temporary)),
      ours_(!temporary_.empty()),
      appears_(appears),
      fd_(std::move(fd)) {}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               Appears appears) {
  std::string temporary;
  Fd fd;
  if (path == "-") {
    fd = Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  } else if (IsOtherThanRegular(path)) {
    fd = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    if (IsBeingWritten(path)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       " is being written by another recording: choose another file, or end "
                       "that one first"));
    }
    fd = NewFileBeside(path, temporary);
  }
  if (!fd.valid()) return WriteError(path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, temporary, appears, std::move(fd)));
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status OutputFile::Append(std::span<const uint8_t> bytes) {
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t got = ::write(fd_.get(), bytes.data() + written, bytes.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int error = got < 0 ? errno : ENOSPC;
      // A torn chunk would only cost the reader a search. What is not ours stays as it is: standard
      // output may be a file with something in it already.
      if (ours_ && ftruncate(fd_.get(), static_cast<off_t>(bytes_)) == 0) {
        lseek(fd_.get(), static_cast<off_t>(bytes_), SEEK_SET);
      }
      return WriteError(name_, error);
    }
    written += static_cast<size_t>(got);
  }
  bytes_ += bytes.size();
  return appears_ == Appears::kWithFirstAppend ? Finish() : absl::OkStatus();
}

absl::Status OutputFile::Finish() { return temporary_.empty() ? absl::OkStatus() : TakeItsPlace(); }

absl::Status OutputFile::TakeItsPlace() {
  const std::string old = path_ + ".old";
  const auto exchange = [this] {
    return ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE);
  };
  // Exchanged first, so that the name is never without a file.
  if (exchange() == 0) {
    if (::rename(temporary_.c_str(), old.c_str()) != 0) {
      const int error = errno;
      exchange();  // the older file goes back to its name
      return WriteError(old, error);
    }
  } else {
    // No older file, or a file system that cannot exchange.
    if (errno != ENOENT && ::rename(path_.c_str(), old.c_str()) != 0 && errno != ENOENT) {
      return WriteError(old, errno);
    }
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return WriteError(path_, errno);
  }
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace vcpulse

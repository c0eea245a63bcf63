#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/fd.h"
#include "monitor/stream/disk/files.h"
#include "monitor/stream/disk/names.h"

namespace vcpulse::stream {
namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kDirectoryMode = 0750;

// errno first: what builds the words may change it.
absl::Status Failed(int error, const char* what, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

class KernelAppendFile final : public AppendFile {
 public:
  KernelAppendFile(Fd fd, std::string path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  absl::Status Append(std::span<const uint8_t> bytes) override {
    if (torn_) {
      if (absl::Status status = Truncate(size_); !status.ok()) return status;
    }
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t got = ::pwrite(fd_.get(), bytes.data() + written, bytes.size() - written,
                                   static_cast<off_t>(size_ + written));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        const int error = got < 0 ? errno : ENOSPC;
        torn_ = written > 0 && ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0;
        return Failed(error, "write", path_);
      }
      written += static_cast<size_t>(got);
    }
    size_ += bytes.size();
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (::fdatasync(fd_.get()) != 0) return Failed(errno, "sync", path_);
    struct stat info{};
    if (::fstat(fd_.get(), &info) == 0 && info.st_nlink == 0) {
      return absl::NotFoundError(absl::StrCat(path_, " was removed while it was written"));
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t bytes) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
      return Failed(errno, "cut", path_);
    }
    size_ = bytes;
    torn_ = false;
    return absl::OkStatus();
  }

  uint64_t size() const override { return size_; }
  bool is_torn() const override { return torn_; }

 private:
  const Fd fd_;
  const std::string path_;
  uint64_t size_;
  bool torn_ = false;
};

// syncfs(2) reports errors of writing from Linux 5.8 on.
bool SyncfsTellsErrors() {
  utsname names{};
  int major = 0;
  int minor = 0;
  if (::uname(&names) != 0 || std::sscanf(names.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 5 || (major == 5 && minor >= 8);
}

class KernelFileSystem final : public FileSystem {
 public:
  KernelFileSystem(Fd fd, std::string directory)
      : fd_(std::move(fd)), directory_(std::move(directory)) {}

  absl::Status Sync() override {
    if (::syncfs(fd_.get()) == 0) return absl::OkStatus();
    return Failed(errno, "sync the file system of", directory_);
  }

 private:
  const Fd fd_;
  const std::string directory_;
};

class KernelLock final : public DirectoryLock {
 public:
  explicit KernelLock(Fd fd) : fd_(std::move(fd)) {}

 private:
  const Fd fd_;
};

class Kernel final : public Files {
 public:
  absl::StatusOr<std::unique_ptr<AppendFile>> OpenToAppend(const std::string& path,
                                                           bool must_be_new) override {
    Fd fd(::open(
        path.c_str(),
        O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (must_be_new ? O_EXCL : 0),
        kFileMode));
    if (!fd.valid()) return Failed(errno, must_be_new ? "create" : "open", path);
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return Failed(errno, "open", path);
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
    }
    return std::make_unique<KernelAppendFile>(std::move(fd), path,
                                              static_cast<uint64_t>(info.st_size));
  }

  absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                std::span<uint8_t> out) override {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return Failed(errno, "open", path);
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(fd.get(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failed(errno, "read", path);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  absl::StatusOr<uint64_t> SizeOf(const std::string& path) override {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return Failed(errno, "look at", path);
    return static_cast<uint64_t>(info.st_size);
  }

  absl::StatusOr<uint64_t> DiskBytesOf(const std::string& path) override {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return Failed(errno, "look at", path);
    constexpr uint64_t kBlock = 512;  // the unit of st_blocks, whatever the file system's is
    return static_cast<uint64_t>(info.st_blocks) * kBlock;
  }

  absl::StatusOr<std::pair<uint64_t, uint64_t>> IdentityOf(const std::string& path) override {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return Failed(errno, "look at", path);
    return std::pair<uint64_t, uint64_t>(info.st_dev, info.st_ino);
  }

  absl::Status CheckPrivate(const std::string& directory) override {
    struct stat info{};
    if (::stat(directory.c_str(), &info) != 0) return Failed(errno, "look at", directory);
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      return absl::PermissionDeniedError(absl::StrCat(directory, " belongs to user ", info.st_uid,
                                                      ": name a directory of your own"));
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat(directory, " can be written by other users: `chmod go-w ", directory, "`"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Kind> KindOf(const std::string& path) override {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return Failed(errno, "look at", path);
    if (S_ISDIR(info.st_mode)) return Kind::kDirectory;
    return S_ISREG(info.st_mode) ? Kind::kFile : Kind::kOther;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    DIR* const stream = ::opendir(directory.c_str());
    if (stream == nullptr) return Failed(errno, "open directory", directory);
    std::vector<std::string> names;
    int error = 0;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(stream);
      if (entry == nullptr) {
        error = errno;
        break;
      }
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(stream);
    if (error != 0) return Failed(error, "read directory", directory);
    std::ranges::sort(names);
    return names;
  }

  absl::Status MakeDirectories(const std::string& directory) override {
    struct stat info{};
    if (::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return absl::OkStatus();
    const std::string parent = ParentOf(directory);
    if (parent != directory && parent != ".") {
      if (absl::Status status = MakeDirectories(parent); !status.ok()) return status;
    }
    if (::mkdir(directory.c_str(), kDirectoryMode) != 0) {
      const int error = errno;
      // Somebody else may just have made it.
      if (error == EEXIST && ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        return absl::OkStatus();
      }
      return Failed(error, "make directory", directory);
    }
    return SyncDirectory(parent);
  }

  absl::Status SyncDirectory(const std::string& directory) override {
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return Failed(errno, "open directory", directory);
    // EINVAL: a file system that has no such call; its names are as safe as they get.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) {
      return Failed(errno, "sync directory", directory);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FileSystem>> OpenFileSystem(
      const std::string& directory) override {
    if (!SyncfsTellsErrors()) return absl::UnimplementedError("Linux before 5.8");
    Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return Failed(errno, "open directory", directory);
    return std::make_unique<KernelFileSystem>(std::move(fd), directory);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return Failed(errno, "rename", from);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return Failed(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::Status RemoveDirectory(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) return Failed(errno, "remove directory", path);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ModifiedAt_ns(const std::string& path) override {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return Failed(errno, "look at", path);
    return ToNs(info.st_mtim);
  }

  absl::StatusOr<int64_t> BegunAt_ns(const std::string& path) override {
    struct statx info{};
    if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &info) != 0) {
      // ENOSYS, or a sandbox of older days: a kernel without the call.
      if (errno == ENOSYS || errno == EPERM) return ModifiedAt_ns(path);
      return Failed(errno, "look at", path);
    }
    if ((info.stx_mask & STATX_BTIME) == 0) return ModifiedAt_ns(path);
    return int64_t{info.stx_btime.tv_sec} * 1'000'000'000 + info.stx_btime.tv_nsec;
  }

  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override {
    const std::string path = directory + "/.lock";
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kFileMode));
    if (!fd.valid()) return Failed(errno, "open", path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error != EWOULDBLOCK) return Failed(error, "lock", path);
      return absl::FailedPreconditionError(
          absl::StrCat(directory, " is in use by another vcpulse: give each its own directory"));
    }
    return std::make_unique<KernelLock>(std::move(fd));
  }
};

}  // namespace

Files& KernelFiles() {
  static Kernel files;
  return files;
}

}  // namespace vcpulse::stream

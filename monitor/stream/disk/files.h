#pragma once

// monitor/stream/disk keeps chunks on disk: the agent's spool and the collector's timelines. It
// knows no socket and no protocol; files come in through `Files`, so that tests can let the machine
// crash.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace vcpulse::stream {

// A file that grows at its end. One thread.
class AppendFile {
 public:
  virtual ~AppendFile() = default;

  // All of `bytes`, or an error, after which the file's length is what it was before, or, where
  // even that cannot be had, unknown (then is_torn(), and the next Append cuts it first).
  // ResourceExhausted for a full disk or quota.
  virtual absl::Status Append(std::span<const uint8_t> bytes) = 0;
  // fdatasync(2): what was appended so far survives a crash of the machine. After an error nothing
  // is known of what was not synced before, whatever a later call says.
  // NotFound where the file has no name any more: somebody removed it.
  virtual absl::Status Sync() = 0;
  // Cuts the file to `bytes`, at most its size.
  virtual absl::Status Truncate(uint64_t bytes) = 0;
  virtual uint64_t size() const = 0;
  virtual bool is_torn() const = 0;
};

// The file system of a directory. One thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // syncfs(2): all that was written to it since it was opened, by anybody, names too. One commit,
  // where many files would cost one each. Errors since the last call, or since it was opened.
  virtual absl::Status Sync() = 0;
};

// A directory that one process alone uses, until it is destroyed.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// The part of a file system that is needed. Paths are given whole. Errors name the path. A symbolic
// link as the last part of a path is not followed, unless a function says so.
class Files {
 public:
  virtual ~Files() = default;

  enum class Kind { kFile, kDirectory, kOther };  // kOther: a symbolic link, a socket, ...

  // Creates it (mode 0640), or opens it to append where `must_be_new` is false. Its name survives a
  // crash only after SyncDirectory of its folder.
  virtual absl::StatusOr<std::unique_ptr<AppendFile>> OpenToAppend(const std::string& path,
                                                                   bool must_be_new) = 0;
  // The bytes from `offset` on into `out`; how many there were.
  virtual absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                        std::span<uint8_t> out) = 0;
  virtual absl::StatusOr<uint64_t> SizeOf(const std::string& path) = 0;
  // What the file's content takes of the disk, which holes and blocks make another number.
  virtual absl::StatusOr<uint64_t> DiskBytesOf(const std::string& path) = 0;
  // Device and inode of what the path names now. Follows links.
  virtual absl::StatusOr<std::pair<uint64_t, uint64_t>> IdentityOf(const std::string& path) = 0;
  // PermissionDenied in words where a user other than this one and root owns the directory or may
  // write to it. Follows links.
  virtual absl::Status CheckPrivate(const std::string& directory) = 0;
  virtual absl::StatusOr<Kind> KindOf(const std::string& path) = 0;
  // Names in a folder, sorted, without . and ..; NotFound where there is none. Follows links.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // With all its parents, mode 0750, each synced into its own parent. Follows links.
  virtual absl::Status MakeDirectories(const std::string& directory) = 0;
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
  // Unimplemented on kernels before 5.8, where syncfs(2) reports no errors.
  virtual absl::StatusOr<std::unique_ptr<FileSystem>> OpenFileSystem(
      const std::string& directory) = 0;
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;           // a file
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;  // an empty one
  // Of the last change of the content, ns since 1970.
  virtual absl::StatusOr<int64_t> ModifiedAt_ns(const std::string& path) = 0;
  // When the file was made, ns since 1970; where the file system does not keep that, ModifiedAt_ns.
  virtual absl::StatusOr<int64_t> BegunAt_ns(const std::string& path) = 0;
  // Locks DIRECTORY/.lock, which stays; no agent's folder is named so. FailedPrecondition where it
  // is locked, by this process or another one.
  virtual absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) = 0;
};

// Those of the kernel. Any thread; each AppendFile is one thread's.
Files& KernelFiles();

}  // namespace vcpulse::stream

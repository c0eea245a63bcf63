#pragma once

// The kernel's files, on a disk that is full, fails or hangs when a test says so.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::fakes {

class FillingFiles final : public stream::Files {
 public:
  std::atomic<bool> is_full = false;
  std::atomic<bool> fails_to_sync = false;
  std::atomic<bool> hangs = false;           // nothing is written until it does no more
  std::atomic<int> appends_until_full = -1;  // so many are taken, then one is not
  std::atomic<int> sync_takes_ms = 0;
  std::atomic<int> syncs = 0;

  absl::StatusOr<std::unique_ptr<stream::AppendFile>> OpenToAppend(const std::string& path,
                                                                   bool must_be_new) override {
    auto file = below_.OpenToAppend(path, must_be_new);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(*this, *std::move(file));
  }
  absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                std::span<uint8_t> out) override {
    return below_.ReadAt(path, offset, out);
  }
  absl::StatusOr<uint64_t> SizeOf(const std::string& path) override { return below_.SizeOf(path); }
  absl::StatusOr<uint64_t> DiskBytesOf(const std::string& path) override {
    return below_.DiskBytesOf(path);
  }
  absl::Status CheckPrivate(const std::string& directory) override {
    return below_.CheckPrivate(directory);
  }
  absl::StatusOr<std::pair<uint64_t, uint64_t>> IdentityOf(const std::string& path) override {
    return below_.IdentityOf(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return below_.List(directory);
  }
  absl::Status MakeDirectories(const std::string& directory) override {
    return below_.MakeDirectories(directory);
  }
  absl::StatusOr<std::unique_ptr<stream::FileSystem>> OpenFileSystem(
      const std::string& directory) override {
    return below_.OpenFileSystem(directory);
  }
  absl::Status SyncDirectory(const std::string& directory) override {
    return below_.SyncDirectory(directory);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return below_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return below_.Remove(path); }
  absl::Status RemoveDirectory(const std::string& path) override {
    return below_.RemoveDirectory(path);
  }
  absl::StatusOr<Kind> KindOf(const std::string& path) override { return below_.KindOf(path); }
  absl::StatusOr<std::unique_ptr<stream::DirectoryLock>> Lock(
      const std::string& directory) override {
    return below_.Lock(directory);
  }
  absl::StatusOr<int64_t> ModifiedAt_ns(const std::string& path) override {
    return below_.ModifiedAt_ns(path);
  }
  absl::StatusOr<int64_t> BegunAt_ns(const std::string& path) override {
    return below_.BegunAt_ns(path);
  }

 private:
  class File final : public stream::AppendFile {
   public:
    File(FillingFiles& files, std::unique_ptr<stream::AppendFile> below)
        : files_(files), below_(std::move(below)) {}

    absl::Status Append(std::span<const uint8_t> bytes) override {
      while (files_.hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (files_.appends_until_full >= 0 && files_.appends_until_full-- == 0) return Full();
      return files_.is_full ? Full() : below_->Append(bytes);
    }
    absl::Status Sync() override {
      if (files_.fails_to_sync) return absl::DataLossError("fdatasync: Input/output error");
      ++files_.syncs;
      std::this_thread::sleep_for(std::chrono::milliseconds(files_.sync_takes_ms));
      return below_->Sync();
    }
    absl::Status Truncate(uint64_t bytes) override { return below_->Truncate(bytes); }
    uint64_t size() const override { return below_->size(); }
    bool is_torn() const override { return below_->is_torn(); }

   private:
    FillingFiles& files_;
    std::unique_ptr<stream::AppendFile> below_;
  };

  static absl::Status Full() {
    return absl::ResourceExhaustedError("No space left on device (free some space)");
  }

  stream::Files& below_ = stream::KernelFiles();
};

}  // namespace vcpulse::fakes

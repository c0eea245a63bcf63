#pragma once

// A file system in memory whose machine crashes. Whatever POSIX allows to be lost may be: bytes and
// names that were not synced, each at random. Any thread.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "monitor/stream/disk/files.h"

namespace vcpulse::fakes {

class CrashingFiles : public stream::Files {
 public:
  explicit CrashingFiles(uint32_t seed = 0) : random_(seed) {}

  // What was not synced is lost, or not. Open files and locks are of no use afterwards. Where the
  // power was off it is on again.
  void Crash() {
    const std::lock_guard lock(mutex_);
    ++life_;
    locked_.clear();
    Names names;
    for (const auto& [path, node] : names_) {
      const auto synced = synced_names_.find(path);
      const bool is_synced = synced != synced_names_.end() && synced->second == node;
      if (is_synced || Coin()) {
        names[path] = node;
      } else if (synced != synced_names_.end()) {
        names[path] = synced->second;  // rename(2) replaces: it is the one or the other
      }
    }
    for (const auto& [path, node] : synced_names_) {
      if (!names_.contains(path) && Coin()) names[path] = node;
    }
    DropOrphans(&names);
    for (auto& [path, node] : names) CrashNode(*node);
    names_ = names;
    synced_names_ = names;
    fail_in_.reset();
    off_in_.reset();
    is_off_ = false;
  }

  // From the n-th operation on that changes something nothing changes any more: a machine that
  // crashes with its threads still running, until Crash tells what is left. 1 is the next one.
  void PowerOffIn(int n) {
    const std::lock_guard lock(mutex_);
    off_in_ = n;
  }
  void PowerOff() {
    const std::lock_guard lock(mutex_);
    is_off_ = true;
  }
  bool is_off() const {
    const std::lock_guard lock(mutex_);
    return is_off_;
  }

  // The n-th operation from now on that changes something fails; 1 is the next one.
  void FailNth(int n, int error) {
    const std::lock_guard lock(mutex_);
    fail_in_ = n;
    error_ = error;
  }
  void FailNothing() {
    const std::lock_guard lock(mutex_);
    fail_in_.reset();
  }
  // Every change fails until it is cleared: a disk that is read-only or gone.
  void FailAll(std::optional<int> error) {
    const std::lock_guard lock(mutex_);
    always_ = error;
  }
  // Reading that file fails until it is cleared.
  void FailReadsOf(const std::string& path, std::optional<int> error) {
    const std::lock_guard lock(mutex_);
    unreadable_.erase(path);
    if (error) unreadable_[path] = *error;
  }
  // Of all files together; more is ENOSPC.
  void SetCapacity(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    capacity_ = bytes;
  }
  // The time of what is written from now on.
  void SetTime(int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    now_ns_ = now_ns;
  }

  uint64_t BytesBelow(const std::string& directory) const {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& [path, node] : names_) {
      if (path.starts_with(directory + "/")) bytes += node->data.size();
    }
    return bytes;
  }
  // Every path there is.
  std::vector<std::string> Paths() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> paths;
    for (const auto& [path, node] : names_) paths.push_back(path);
    return paths;
  }
  // What somebody else put there, synced.
  void Put(const std::string& path, std::span<const uint8_t> bytes) {
    const std::lock_guard lock(mutex_);
    for (std::string folder = ParentOf(path); folder != "/"; folder = ParentOf(folder)) {
      names_.emplace(folder, NewNode(Kind::kDirectory));
      synced_names_[folder] = names_[folder];
    }
    const auto node = NewNode(Kind::kFile);
    node->data.assign(bytes.begin(), bytes.end());
    node->synced = node->data;
    node->untouched = node->data.size();
    names_[path] = node;
    synced_names_[path] = node;
  }
  std::vector<uint8_t> Get(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return names_.at(path)->data;
  }

  absl::StatusOr<std::unique_ptr<stream::AppendFile>> OpenToAppend(const std::string& path,
                                                                   bool must_be_new) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found != names_.end()) {
      if (must_be_new) return Error(EEXIST, path);
      if (found->second->kind != Kind::kFile) return Error(EISDIR, path);
      return std::make_unique<File>(*this, path, found->second);
    }
    if (absl::Status status = MayChange(path); !status.ok()) return status;
    if (ParentOf(path) != "/" && !names_.contains(ParentOf(path))) return Error(ENOENT, path);
    const auto node = NewNode(Kind::kFile);
    names_[path] = node;
    return std::make_unique<File>(*this, path, node);
  }
  absl::StatusOr<size_t> ReadAt(const std::string& path, uint64_t offset,
                                std::span<uint8_t> out) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    if (node->second->kind != Kind::kFile) return Error(EISDIR, path);
    if (unreadable_.contains(path)) return Error(unreadable_[path], path);
    const std::vector<uint8_t>& data = node->second->data;
    if (offset >= data.size()) return 0;
    const size_t length = std::min<uint64_t>(out.size(), data.size() - offset);
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(offset), length, out.begin());
    return length;
  }
  absl::StatusOr<uint64_t> SizeOf(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    return node->second->data.size();
  }
  absl::StatusOr<uint64_t> DiskBytesOf(const std::string& path) override { return SizeOf(path); }
  absl::Status CheckPrivate(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<std::pair<uint64_t, uint64_t>> IdentityOf(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    return std::pair<uint64_t, uint64_t>(1, reinterpret_cast<uintptr_t>(node->second.get()));
  }
  absl::StatusOr<Kind> KindOf(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    return node->second->kind;
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(directory);
    if (node == names_.end()) return Error(ENOENT, directory);
    if (node->second->kind != Kind::kDirectory) return Error(ENOTDIR, directory);
    std::vector<std::string> names;
    for (const auto& [path, child] : names_) {
      if (ParentOf(path) == directory) names.push_back(path.substr(directory.size() + 1));
    }
    return names;
  }
  absl::Status MakeDirectories(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    if (directory == "/" || names_.contains(directory)) return absl::OkStatus();
    if (absl::Status status = MakeDirectories(ParentOf(directory)); !status.ok()) return status;
    if (absl::Status status = MayChange(directory); !status.ok()) return status;
    names_[directory] = NewNode(Kind::kDirectory);
    return SyncDirectory(ParentOf(directory));
  }
  absl::Status SyncDirectory(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    if (directory != "/" && !names_.contains(directory)) return Error(ENOENT, directory);
    if (absl::Status status = MayChange(directory); !status.ok()) return status;
    const auto is_inside = [&](const auto& entry) { return ParentOf(entry.first) == directory; };
    std::erase_if(synced_names_, is_inside);
    for (const auto& entry : names_) {
      if (is_inside(entry)) synced_names_.insert(entry);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<stream::FileSystem>> OpenFileSystem(
      const std::string& directory) override {
    return std::make_unique<WholeFileSystem>(*this, directory);
  }
  absl::Status SyncFileSystem(const std::string& directory) {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = MayChange(directory); !status.ok()) return status;
    synced_names_ = names_;
    for (const auto& [path, node] : names_) {
      node->synced = node->data;
      node->untouched = node->data.size();
    }
    return absl::OkStatus();
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (!names_.contains(from)) return Error(ENOENT, from);
    if (absl::Status status = MayChange(from); !status.ok()) return status;
    names_[to] = names_[from];
    names_.erase(from);
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    if (node->second->kind == Kind::kDirectory) return Error(EISDIR, path);
    if (absl::Status status = MayChange(path); !status.ok()) return status;
    names_.erase(path);
    return absl::OkStatus();
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto names = List(path);
    if (!names.ok()) return names.status();
    if (!names->empty()) return Error(ENOTEMPTY, path);
    if (absl::Status status = MayChange(path); !status.ok()) return status;
    names_.erase(path);
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> ModifiedAt_ns(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    return node->second->modified_ns;
  }
  absl::StatusOr<int64_t> BegunAt_ns(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto node = names_.find(path);
    if (node == names_.end()) return Error(ENOENT, path);
    return node->second->begun_ns;
  }
  absl::StatusOr<std::unique_ptr<stream::DirectoryLock>> Lock(
      const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    if (!locked_.insert(directory).second) {
      return absl::FailedPreconditionError(directory + " is in use");
    }
    return std::make_unique<HeldLock>(*this, directory);
  }

 private:
  struct Node {
    Kind kind = Kind::kFile;
    std::vector<uint8_t> data{};    // as a program sees it
    std::vector<uint8_t> synced{};  // as it surely is on the disk
    size_t untouched = 0;           // bytes at the beginning that are the same in both
    // What a failed sync may have lost; nothing but cutting it off mends that.
    std::vector<std::pair<size_t, size_t>> doubtful{};
    int64_t begun_ns = 0;
    int64_t modified_ns = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  class File final : public stream::AppendFile {
   public:
    File(CrashingFiles& files, std::string path, std::shared_ptr<Node> node)
        : files_(files), path_(std::move(path)), node_(std::move(node)), life_(files.life_) {}

    absl::Status Append(std::span<const uint8_t> bytes) override {
      const std::lock_guard lock(files_.mutex_);
      if (life_ != files_.life_) return Error(EIO, path_);
      if (absl::Status status = files_.MayChange(path_); !status.ok()) return status;
      uint64_t all = bytes.size();
      for (const auto& [path, node] : files_.names_) all += node->data.size();
      if (all > files_.capacity_) return Error(ENOSPC, path_);
      node_->data.insert(node_->data.end(), bytes.begin(), bytes.end());
      node_->modified_ns = files_.now_ns_;
      return absl::OkStatus();
    }
    absl::Status Sync() override {
      const std::lock_guard lock(files_.mutex_);
      if (life_ != files_.life_) return Error(EIO, path_);
      if (absl::Status status = files_.MayChange(path_); !status.ok()) {
        if (node_->untouched < node_->data.size()) {
          node_->doubtful.emplace_back(node_->untouched, node_->data.size());
        }
        return status;
      }
      node_->synced = node_->data;
      node_->untouched = node_->data.size();
      return absl::OkStatus();
    }
    absl::Status Truncate(uint64_t bytes) override {
      const std::lock_guard lock(files_.mutex_);
      if (life_ != files_.life_) return Error(EIO, path_);
      if (absl::Status status = files_.MayChange(path_); !status.ok()) return status;
      if (files_.Coin()) {  // the kernel wrote it back before, unasked
        node_->synced = node_->data;
        node_->untouched = node_->data.size();
      }
      node_->data.resize(bytes);
      node_->untouched = std::min<size_t>(node_->untouched, bytes);
      for (auto& [from, to] : node_->doubtful) to = std::min<size_t>(to, bytes);
      std::erase_if(node_->doubtful, [](const auto& range) { return range.first >= range.second; });
      return absl::OkStatus();
    }
    uint64_t size() const override {
      const std::lock_guard lock(files_.mutex_);
      return node_->data.size();
    }
    bool is_torn() const override { return false; }

   private:
    CrashingFiles& files_;
    const std::string path_;
    const std::shared_ptr<Node> node_;
    const int life_;
  };

  class WholeFileSystem final : public stream::FileSystem {
   public:
    WholeFileSystem(CrashingFiles& files, std::string directory)
        : files_(files), directory_(std::move(directory)) {}
    absl::Status Sync() override { return files_.SyncFileSystem(directory_); }

   private:
    CrashingFiles& files_;
    const std::string directory_;
  };

  class HeldLock final : public stream::DirectoryLock {
   public:
    HeldLock(CrashingFiles& files, std::string directory)
        : files_(files), directory_(std::move(directory)), life_(files.life_) {}
    ~HeldLock() override {
      const std::lock_guard lock(files_.mutex_);
      if (life_ == files_.life_) files_.locked_.erase(directory_);
    }

   private:
    CrashingFiles& files_;
    const std::string directory_;
    const int life_;
  };

  static absl::Status Error(int error, const std::string& path) {
    return absl::ErrnoToStatus(error, path);
  }
  static std::string ParentOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  }
  std::shared_ptr<Node> NewNode(Kind kind) const {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->begun_ns = now_ns_;
    node->modified_ns = now_ns_;
    return node;
  }
  bool Coin() { return random_() % 2 == 0; }
  size_t UpTo(size_t most) { return random_() % (most + 1); }

  absl::Status MayChange(const std::string& path) {
    if (off_in_ && --*off_in_ <= 0) is_off_ = true;
    if (is_off_) return Error(EIO, path);
    if (always_) return Error(*always_, path);
    if (!fail_in_ || --*fail_in_ > 0) return absl::OkStatus();
    fail_in_.reset();
    return Error(error_, path);
  }

  void CrashNode(Node& node) {
    for (const auto& [from, to] : node.doubtful) {
      if (Coin()) std::fill(node.data.begin() + from, node.data.begin() + to, 0);
      if (to <= node.synced.size() && Coin()) {
        std::fill(node.synced.begin() + from, node.synced.begin() + to, 0);
      }
    }
    if (node.untouched == node.data.size() && node.synced.size() == node.data.size()) {
      node.data = node.synced;
    } else if (Coin()) {
      node.data = node.synced;  // nothing of it came as far
    } else {
      // A part of what was written behind `untouched`: a beginning, or all of it with a hole.
      const size_t unsynced = node.data.size() - node.untouched;
      node.data.resize(node.untouched + (Coin() ? unsynced : UpTo(unsynced)));
      if (Coin()) {
        const size_t from = node.untouched + UpTo(node.data.size() - node.untouched);
        const size_t to = from + UpTo(node.data.size() - from);
        std::fill(node.data.begin() + static_cast<ptrdiff_t>(from),
                  node.data.begin() + static_cast<ptrdiff_t>(to), 0);
      }
    }
    node.synced = node.data;
    node.untouched = node.data.size();
    node.doubtful.clear();
  }

  static void DropOrphans(Names* names) {
    std::erase_if(*names, [&](const auto& entry) {
      for (std::string up = ParentOf(entry.first); up != "/"; up = ParentOf(up)) {
        if (!names->contains(up)) return true;
      }
      return false;
    });
  }

  // Operations call each other.
  mutable std::recursive_mutex mutex_;
  std::mt19937 random_;
  Names names_;
  Names synced_names_;
  std::set<std::string> locked_;
  int life_ = 0;
  std::optional<int> off_in_;
  bool is_off_ = false;
  std::optional<int> fail_in_;
  int error_ = EIO;
  std::optional<int> always_;
  std::map<std::string, int> unreadable_;
  uint64_t capacity_ = uint64_t{1} << 40;
  int64_t now_ns_ = 0;
};

}  // namespace vcpulse::fakes

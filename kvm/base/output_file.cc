#include "kvm/base/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kvm/base/signals.h"

namespace vcpulse {
namespace {

absl::Status WriteError(const std::string& name, int error) {
  const std::string advice = error == ENOSPC   ? " (free some space or choose another file)"
                             : error == EISDIR ? " (name a file in it)"
                                               : "";
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat("cannot write ", name, advice));
  return error == EPIPE ? absl::CancelledError(status.message()) : status;
}

// Whoever writes a file holds its lock, whatever name it has by now.
bool IsBeingWritten(const std::string& path) {
  const Fd other(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return other.valid() && ::flock(other.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The first name beside `path` that `take` can take; it fails as a system call does. Empty, and
// errno says why, where there is none.
std::string NameBeside(const std::string& path,
                       const std::function<bool(const std::string& name)>& take) {
  constexpr int kMostNames = 1000;  // of this process, or left by one that was killed
  for (int i = 0; i < kMostNames; ++i) {
    std::string name = absl::StrCat(path, ".", getpid(), ".", i, ".new");
    if (take(name)) return name;
    if (errno != EEXIST) break;
  }
  return "";
}

// Of an open file, which may have no name.
std::string LinkTo(const Fd& fd) { return absl::StrCat("/proc/self/fd/", fd.get()); }

// A new file in the folder of `path`: one without a name, which leaves nothing behind where the
// process is killed, or, where the file system has none, one with the name `temporary`. errno where
// there is neither.
Fd NewFileBeside(const std::string& path, std::string& temporary) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  Fd fd(::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644));
  const bool can_be_named = fd.valid() && ::access(LinkTo(fd).c_str(), W_OK) == 0;
  if (!can_be_named) {
    temporary = NameBeside(path, [&fd](const std::string& name) {
      fd = Fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      return fd.valid();
    });
  }
  if (fd.valid()) static_cast<void>(::flock(fd.get(), LOCK_EX | LOCK_NB));  // nobody else has it
  return fd;
}

bool IsOtherThanRegular(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

}  // namespace

OutputFile::OutputFile(std::string path, bool ours, std::string temporary, Appears appears, Fd fd)
    : name_(path == "-" ? "standard output" : path),
      path_(std::move(path)),
      temporary_(std::move(temporary)),
      ours_(ours),
      has_its_name_(!ours),
      appears_(appears),
      fd_(std::move(fd)) {}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               Appears appears) {
  std::string temporary;
  bool ours = false;
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
    ours = true;
  }
  if (!fd.valid()) return WriteError(path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, ours, temporary, appears, std::move(fd)));
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

absl::Status OutputFile::Finish() { return has_its_name_ ? absl::OkStatus() : TakeItsPlace(); }

absl::Status OutputFile::TakeItsPlace() {
  const std::string old = path_ + ".old";
  if (temporary_.empty()) {
    temporary_ = NameBeside(path_, [this](const std::string& name) {
      return ::linkat(AT_FDCWD, LinkTo(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) ==
             0;
    });
    if (temporary_.empty()) return WriteError(path_, errno);
  }
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
  has_its_name_ = true;
  return absl::OkStatus();
}

struct OutputThread::State {
  // Handed over at `mono_ns`.
  struct Chunk {
    std::vector<uint8_t> bytes;
    int64_t mono_ns = 0;
  };

  std::unique_ptr<OutputFile> file;  // the thread's alone

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<Chunk> waiting;  // the first one is being written
  size_t waiting_bytes = 0;
  int64_t written_until_ns = MonotonicNow_ns();  // when the last written chunk was handed over
  absl::Status error;                            // the first one
  bool closing = false;                          // nothing more comes
  bool abandoned = false;                        // nothing more is to be written
  bool ended = false;                            // the thread is done, and the file closed

  // Whether `condition` came true, with the lock held, before the deadline.
  template <typename Condition>
  bool WaitFor(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
               Condition&& condition) const {
    while (!condition()) {
      const absl::Duration left = deadline.left();
      if (left <= absl::ZeroDuration()) return false;
      changed.wait_for(lock, absl::ToChronoNanoseconds(std::min(left, absl::Hours(1))));
    }
    return true;
  }

  // Why what waits is given up; with the lock held.
  absl::Status Unwritten(const std::string& name) const {
    if (waiting.empty()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "cannot close ", name, ": it does not answer; the end of the recording may be missing"));
    }
    const absl::Duration span = absl::Nanoseconds(MonotonicNow_ns() - written_until_ns);
    return absl::DeadlineExceededError(absl::StrCat(
        "cannot write ", name, ": it takes no data; the last ",
        absl::FormatDuration(absl::Trunc(span, absl::Milliseconds(100))), " (", waiting_bytes,
        " bytes) of the recording were not written: read it faster, or choose another output"));
  }
};

OutputThread::OutputThread(std::unique_ptr<OutputFile> file)
    : name_(file->name()), state_(std::make_shared<State>()) {
  state_->file = std::move(file);
  const BlockedSignals blocked;  // they are the caller's
  thread_ = std::thread([state = state_] {
    pthread_setname_np(pthread_self(), "vcpulse-output");
    Run(*state);
  });
}

OutputThread::~OutputThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->abandoned = true;
  }
  constexpr absl::Duration kPatience = absl::Seconds(2);
  static_cast<void>(Finish(Deadline(kPatience)));
}

void OutputThread::Run(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(
        lock, [&state] { return !state.waiting.empty() || state.closing || state.abandoned; });
    if (state.waiting.empty() || state.abandoned) break;
    const State::Chunk& chunk = state.waiting.front();  // stays where it is as others are added
    lock.unlock();
    absl::Status status = state.file->Append(chunk.bytes);
    lock.lock();
    if (!status.ok()) {
      state.error = std::move(status);
      break;
    }
    state.written_until_ns = chunk.mono_ns;
    state.waiting_bytes -= chunk.bytes.size();
    state.waiting.pop_front();
    state.changed.notify_all();
  }
  lock.unlock();
  state.file.reset();  // close(2) may hang too
  lock.lock();
  state.ended = true;
  state.changed.notify_all();
}

absl::Status OutputThread::Append(std::span<const uint8_t> bytes) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->error.ok()) return state_->error;
  if (state_->waiting_bytes + bytes.size() > kMostBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", name_, ": it takes no data, and ", state_->waiting_bytes,
                     " bytes of the recording wait for it: read it faster, or choose another "
                     "output"));
  }
  state_->waiting.push_back({.bytes = {bytes.begin(), bytes.end()}, .mono_ns = MonotonicNow_ns()});
  state_->waiting_bytes += bytes.size();
  state_->changed.notify_all();
  return absl::OkStatus();
}

bool OutputThread::backlogged() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error.ok() && state_->waiting_bytes >= kBacklogBytes;
}

absl::Status OutputThread::Settle(const Deadline& deadline) const {
  std::unique_lock lock(state_->mutex);
  state_->WaitFor(lock, deadline,
                  [this] { return state_->waiting.empty() || !state_->error.ok(); });
  return state_->error;
}

absl::Status OutputThread::Finish(const Deadline& deadline) {
  std::unique_lock lock(state_->mutex);
  state_->closing = true;
  state_->changed.notify_all();
  if (!state_->WaitFor(lock, deadline, [this] { return state_->ended; })) {
    state_->abandoned = true;
    thread_.detach();
    return state_->Unwritten(name_);
  }
  absl::Status status = state_->error;
  lock.unlock();
  thread_.join();
  return status;
}

}  // namespace vcpulse

#include "kvm/counters/scheduler_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

absl::StatusOr<Fd> OpenFile(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    return absl::ErrnoToStatus(error, absl::StrCat("opening ", path));
  }
  return fd;
}

// The start of a file of /proc, read anew, into `buffer`.
template <size_t N>
OrErrno<std::string_view> ReadStart(const Fd& fd, std::array<char, N>& buffer) {
  const ssize_t got = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return {.error = errno};
  return {.value = {buffer.data(), static_cast<size_t>(got)}};
}

}  // namespace

absl::StatusOr<ThreadScheduling> ThreadScheduling::Open(const std::string& root, pid_t pid,
                                                        pid_t tid) {
  const std::string task = absl::StrCat(root, "/proc/", pid, "/task/", tid);
  absl::StatusOr<Fd> schedstat = OpenFile(task + "/schedstat");
  if (!schedstat.ok()) return schedstat.status();
  absl::StatusOr<Fd> stat = OpenFile(task + "/stat");
  if (!stat.ok()) return stat.status();
  ThreadScheduling scheduling;
  scheduling.schedstat_ = std::move(*schedstat);
  scheduling.stat_ = std::move(*stat);
  return scheduling;
}

OrErrno<SchedulerTimes> ThreadScheduling::Read() const {
  std::array<char, 96> buffer;  // three 64-bit numbers
  const OrErrno<std::string_view> text = ReadStart(schedstat_, buffer);
  if (!text.ok()) return {.error = text.error};
  const std::optional<SchedStat> parsed = ParseSchedStat(text.value);
  if (!parsed) return {.error = EIO};
  return {.value = {.run_ns = parsed->run_ns, .run_delay_ns = parsed->run_delay_ns}};
}

OrErrno<char> ThreadScheduling::State() const {
  std::array<char, 1024> buffer;
  const OrErrno<std::string_view> text = ReadStart(stat_, buffer);
  if (!text.ok()) return {.error = text.error};
  const std::optional<char> state = ParseTaskState(text.value);
  if (!state) return {.error = EIO};
  return {.value = *state};
}

}  // namespace vcpulse::kvm

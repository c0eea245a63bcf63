#include "kvm/counters/scheduler_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/counters/errno_advice.h"
#include "kvm/proc_files.h"

namespace vcpulse::kvm {
namespace {

// The start of a file of /proc, read anew, into `buffer`.
template <typename File, size_t N>
OrErrno<std::string_view> ReadStart(const File& file, std::array<char, N>& buffer) {
  if (!file.fd.valid()) return {.error = file.error};
  const ssize_t got = ::pread(file.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return {.error = errno};
  return {.value = {buffer.data(), static_cast<size_t>(got)}};
}

}  // namespace

ThreadScheduling::File ThreadScheduling::OpenFile(const std::string& path) {
  File file{.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), .error = 0};
  if (!file.fd.valid()) file.error = errno;
  return file;
}

OrErrno<ThreadScheduling> ThreadScheduling::Open(const std::string& root, pid_t pid, pid_t tid) {
  const std::string task = absl::StrCat(root, "/proc/", pid, "/task/", tid);
  ThreadScheduling scheduling;
  scheduling.stat_ = OpenFile(task + "/stat");
  scheduling.schedstat_ = OpenFile(task + "/schedstat");
  for (const int error : {scheduling.stat_.error, scheduling.schedstat_.error}) {
    if (MeansShortage(error)) return {.error = error};
  }
  const bool gone = ::access(task.c_str(), F_OK) != 0 && errno == ENOENT;
  if (gone) return {};
  return {.value = std::move(scheduling)};
}

OrErrno<SchedulerTimes> ThreadScheduling::Read() const {
  std::array<char, 96> buffer;  // three 64-bit numbers
  const OrErrno<std::string_view> text = ReadStart(schedstat_, buffer);
  if (!text.ok()) return {.error = text.error};
  const std::optional<SchedStat> parsed = ParseSchedStat(text.value);
  if (!parsed) return {.error = EIO};
  if (*parsed == SchedStat{}) return {.error = ENODATA};
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

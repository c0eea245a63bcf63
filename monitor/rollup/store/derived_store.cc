#include "monitor/rollup/store/derived_store.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/disk/retention.h"

namespace vcpulse::rollup {
namespace {

constexpr std::chrono::seconds kPassEach{5};
constexpr int64_t kRemoveEach_ns = 60'000'000'000;
constexpr int kLowestPriority = 19;
constexpr size_t kMostSaid = 1000;

absl::StatusOr<std::vector<std::string>> FoldersIn(stream::Files& files,
                                                   const std::string& folder) {
  const auto names = files.List(folder);
  if (!names.ok()) return names.status();
  std::vector<std::string> folders;
  for (const std::string& name : *names) {
    const auto kind = files.KindOf(absl::StrCat(folder, "/", name));
    if (!kind.ok() && !absl::IsNotFound(kind.status())) return kind.status();
    if (kind.ok() && *kind == stream::Files::Kind::kDirectory) folders.push_back(name);
  }
  return folders;
}

std::vector<std::string> FoldersIn(stream::Files& files, const std::string& folder,
                                   SaidOnce& said) {
  auto folders = FoldersIn(files, folder);
  if (folders.ok()) return *std::move(folders);
  if (!absl::IsNotFound(folders.status())) said.Say(folders.status());
  return {};
}

}  // namespace

void SaidOnce::Say(const absl::Status& status) {
  if (said_.size() >= kMostSaid) said_.clear();
  const std::string text(status.message());
  if (said_.insert(text).second && say_) say_(absl::StrCat(flag_, ": ", text));
}

absl::StatusOr<std::set<StreamKey>> StreamsBelow(stream::Files& files,
                                                 const std::string& directory) {
  const auto agents = FoldersIn(files, directory);
  if (!agents.ok()) return agents.status();
  std::set<StreamKey> streams;
  for (const std::string& agent : *agents) {
    if (agent.starts_with('.')) continue;
    const auto folders = FoldersIn(files, absl::StrCat(directory, "/", agent));
    if (absl::IsNotFound(folders.status())) continue;
    if (!folders.ok()) return folders.status();
    for (const std::string& stream : *folders) {
      if (stream::StreamOfFolder(stream)) streams.emplace(agent, stream);
    }
  }
  return streams;
}

absl::StatusOr<std::vector<std::string>> TimelinesIn(stream::Files& files,
                                                     const std::string& folder) {
  auto names = files.List(folder);
  if (names.ok()) {
    std::erase_if(*names,
                  [](const std::string& name) { return !stream::SequenceOfFileName(name); });
  }
  return names;
}

void ForEachDatedFile(stream::Files& files, const std::string& root, SaidOnce& said,
                      const std::function<bool(const DatedFile&)>& is_to_be_removed,
                      const std::set<std::string>& in_use) {
  for (const std::string& date : FoldersIn(files, root, said)) {
    if (!date.starts_with("date=")) continue;
    const std::string of_date = absl::StrCat(root, "/", date);
    for (const std::string& host : FoldersIn(files, of_date, said)) {
      const std::string of_host = absl::StrCat(of_date, "/", host);
      const auto names = files.List(of_host);
      if (!names.ok()) continue;
      size_t left = names->size();
      for (const std::string& name : *names) {
        const std::string path = absl::StrCat(of_host, "/", name);
        if (in_use.contains(path)) continue;
        if (!is_to_be_removed({.date_folder = date, .host_folder = host, .name = name})) continue;
        const absl::Status removed = files.Remove(path);
        if (removed.ok()) --left;
        if (!removed.ok()) said.Say(removed);
      }
      if (left == 0 && !in_use.contains(of_host)) static_cast<void>(files.RemoveDirectory(of_host));
    }
    const auto hosts = files.List(of_date);
    if (hosts.ok() && hosts->empty()) static_cast<void>(files.RemoveDirectory(of_date));
  }
}

std::string Utc(const char* format, int64_t realtime_ns) {
  return absl::FormatTime(format, absl::FromUnixNanos(realtime_ns), absl::UTCTimeZone());
}

DerivingThread::DerivingThread(std::vector<std::unique_ptr<DerivedStore>> stores, Clock realtime)
    : stores_(std::move(stores)),
      realtime_(realtime),
      thread_([this](const std::stop_token& stopped) { Run(stopped); }) {}

DerivingThread::~DerivingThread() = default;

void DerivingThread::Run(const std::stop_token& stopped) {
  pthread_setname_np(pthread_self(), "vcpulse-derive");
  // Of this thread alone.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowestPriority));
  stream::WallClock clock;
  std::optional<int64_t> removed_ns;
  std::unique_lock lock(mutex_);
  while (!stopped.stop_requested()) {
    const int64_t now_ns = realtime_();
    const int64_t boottime_ns = ClockNow_ns(CLOCK_BOOTTIME);
    const Now now{.realtime_ns = now_ns, .boottime_ns = boottime_ns};
    for (const auto& store : stores_) store->Pass(now, stopped);
    if (!removed_ns || boottime_ns - *removed_ns >= kRemoveEach_ns) {
      removed_ns = boottime_ns;
      if (clock.IsPlausible(now_ns, boottime_ns)) {
        for (const auto& store : stores_) store->RemoveOld(now_ns);
      }
    }
    wake_.wait_for(lock, stopped, kPassEach, [] { return false; });
  }
}

}  // namespace vcpulse::rollup

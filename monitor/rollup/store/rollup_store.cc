#include "monitor/rollup/store/rollup_store.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "monitor/stream/disk/names.h"

namespace vcpulse::rollup {
namespace {

constexpr std::chrono::seconds kPassEach{5};
constexpr int64_t kRemoveEach_ns = 60'000'000'000;
constexpr int64_t kRetryAfter_ns = 60'000'000'000;
constexpr int kLowestPriority = 19;
constexpr size_t kMostSaid = 1000;

// When the slice of a file "STREAMID-20261127T202000Z.csv" begins, also of a part of it that a
// killed process left; nothing for another name.
std::optional<int64_t> BeginOf(const std::string& name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::string start = name.substr(dash + 1, name.find('.', dash) - dash - 1);
  absl::Time begin;
  if (!absl::ParseTime("%E4Y%m%dT%H%M%SZ", start, &begin, nullptr)) return std::nullopt;
  return absl::ToUnixNanos(begin);
}

}  // namespace

std::vector<std::string> RollupStore::FoldersIn(const std::string& folder) {
  std::vector<std::string> folders;
  const auto names = files_.List(folder);
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) SayOnce(names.status());
    return folders;
  }
  for (const std::string& name : *names) {
    const auto kind = files_.KindOf(absl::StrCat(folder, "/", name));
    if (kind.ok() && *kind == stream::Files::Kind::kDirectory) folders.push_back(name);
  }
  return folders;
}

void RollupStore::SayOnce(const absl::Status& status) {
  if (said_.size() >= kMostSaid) said_.clear();
  const std::string text(status.message());
  if (said_.insert(text).second && options_.say) options_.say(absl::StrCat("--rollup: ", text));
}

void RollupStore::Pass(int64_t realtime_ns, const std::stop_token& stopped) {
  std::set<StreamKey> there;
  for (const std::string& agent : FoldersIn(options_.directory)) {
    if (agent.starts_with('.')) continue;
    for (const std::string& stream : FoldersIn(absl::StrCat(options_.directory, "/", agent))) {
      if (stream::StreamOfFolder(stream)) there.emplace(agent, stream);
    }
  }
  std::erase_if(streams_, [&there](const auto& known) { return !there.contains(known.first); });
  for (const StreamKey& key : there) {
    if (stopped.stop_requested()) return;
    const auto failed = failed_until_ns_.find(key);
    if (failed != failed_until_ns_.end() && realtime_ns < failed->second) continue;
    failed_until_ns_.erase(key);
    std::unique_ptr<StreamRollup>& rollup = streams_[key];
    if (rollup == nullptr) {
      rollup = std::make_unique<StreamRollup>(
          files_, options_.levels,
          StreamRollup::Place{
              .directory = options_.directory, .agent = key.first, .stream = key.second});
    }
    while (!stopped.stop_requested()) {
      const auto more = rollup->Advance(realtime_ns);
      if (more.ok() && *more) continue;
      if (more.ok()) break;
      // It is read from its beginning, after a while.
      if (!absl::IsNotFound(more.status())) SayOnce(more.status());
      failed_until_ns_[key] = realtime_ns + kRetryAfter_ns;
      streams_.erase(key);
      break;
    }
  }
}

void RollupStore::RemoveOld(int64_t realtime_ns) {
  for (const StoredLevel& level : options_.levels) {
    if (level.max_age_ns) RemoveOldOf(level, realtime_ns);
  }
}

void RollupStore::RemoveOldOf(const StoredLevel& level, int64_t realtime_ns) {
  const std::string folder = absl::StrCat(options_.directory, "/.rollup/", level.name);
  for (const std::string& date : FoldersIn(folder)) {
    const std::string of_date = absl::StrCat(folder, "/", date);
    for (const std::string& host : FoldersIn(of_date)) {
      const std::string of_host = absl::StrCat(of_date, "/", host);
      const auto names = files_.List(of_host);
      if (!names.ok()) continue;
      size_t left = names->size();
      for (const std::string& name : *names) {
        const auto begin_ns = BeginOf(name);
        if (!begin_ns || *begin_ns + level.SliceNs() > realtime_ns - *level.max_age_ns) continue;
        const absl::Status removed = files_.Remove(absl::StrCat(of_host, "/", name));
        if (removed.ok()) --left;
        if (!removed.ok()) SayOnce(removed);
      }
      if (left == 0) static_cast<void>(files_.RemoveDirectory(of_host));
    }
    const auto hosts = files_.List(of_date);
    if (hosts.ok() && hosts->empty()) static_cast<void>(files_.RemoveDirectory(of_date));
  }
}

RollupThread::RollupThread(stream::Files& files, RollupStore::Options options, Clock realtime)
    : store_(files, std::move(options)),
      realtime_(realtime),
      thread_([this](const std::stop_token& stopped) { Run(stopped); }) {}

RollupThread::~RollupThread() = default;

void RollupThread::Run(const std::stop_token& stopped) {
  pthread_setname_np(pthread_self(), "vcpulse-rollup");
  // Of this thread alone.
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowestPriority));
  stream::WallClock clock;
  std::optional<int64_t> removed_ns;
  std::unique_lock lock(mutex_);
  while (!stopped.stop_requested()) {
    const int64_t now_ns = realtime_();
    store_.Pass(now_ns, stopped);
    const int64_t boottime_ns = ClockNow_ns(CLOCK_BOOTTIME);
    if (!removed_ns || boottime_ns - *removed_ns >= kRemoveEach_ns) {
      removed_ns = boottime_ns;
      if (clock.IsPlausible(now_ns, boottime_ns)) store_.RemoveOld(now_ns);
    }
    wake_.wait_for(lock, stopped, kPassEach, [] { return false; });
  }
}

}  // namespace vcpulse::rollup

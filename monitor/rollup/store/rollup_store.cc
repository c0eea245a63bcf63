#include "monitor/rollup/store/rollup_store.h"

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace vcpulse::rollup {
namespace {

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

void RollupStore::Pass(const Now& now, const std::stop_token& stopped) {
  const auto there = StreamsBelow(files_, options_.directory);
  if (!there.ok()) return said_.Say(there.status());
  std::erase_if(streams_, [&there](const auto& known) { return !there->contains(known.first); });
  for (const StreamKey& key : *there) {
    if (stopped.stop_requested()) return;
    const auto failed = failed_until_ns_.find(key);
    if (failed != failed_until_ns_.end() && now.boottime_ns < failed->second) continue;
    failed_until_ns_.erase(key);
    std::unique_ptr<StreamRollup>& rollup = streams_[key];
    if (rollup == nullptr) {
      rollup = std::make_unique<StreamRollup>(
          shared_, StreamRollup::Place{
                       .directory = options_.directory, .agent = key.first, .stream = key.second});
    }
    while (!stopped.stop_requested()) {
      const auto more = rollup->Advance(now.boottime_ns);
      if (more.ok() && *more) continue;
      if (more.ok()) break;
      // It is read from its beginning, after a while.
      if (!absl::IsNotFound(more.status())) said_.Say(more.status());
      failed_until_ns_[key] = now.boottime_ns + kRetryAfter_ns;
      streams_.erase(key);
      break;
    }
  }
}

void RollupStore::RemoveOld(int64_t realtime_ns) {
  std::set<std::string> in_use;
  for (const auto& [key, rollup] : streams_) rollup->AddInUse(in_use);
  for (const StoredLevel& level : options_.levels) {
    if (!level.max_age_ns) continue;
    const int64_t until_ns = realtime_ns - *level.max_age_ns;
    ForEachDatedFile(
        files_, absl::StrCat(options_.directory, "/.rollup/", level.name), said_,
        [&](const DatedFile& file) {
          const auto begin_ns = BeginOf(file.name);
          return begin_ns && *begin_ns + level.SliceNs() <= until_ns;
        },
        in_use);
  }
}

}  // namespace vcpulse::rollup

#include "monitor/stream/disk/retention.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/names.h"

namespace vcpulse::stream {
namespace {

// Of the disk, beside a file's content: an inode and a name; a folder is a block at least.
constexpr uint64_t kFileCost = 512;
constexpr uint64_t kFolderCost = 4096;

struct OldFile {
  std::string path;
  std::string folder;  // of the stream
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  bool must_stay = false;
};

class Sweep {
 public:
  Sweep(Files& files, Removed* removed) : files_(files), removed_(removed) {}

  // Folders in `directory`; one that cannot be read is told and passed over.
  std::vector<std::string> Folders(const std::string& directory) {
    std::vector<std::string> folders;
    const auto names = files_.List(directory);
    if (Told(names.status())) return folders;
    for (const std::string& name : *names) {
      const auto kind = files_.KindOf(absl::StrCat(directory, "/", name));
      if (kind.ok() && *kind == Files::Kind::kDirectory) folders.push_back(name);
    }
    return folders;
  }

  void Find(const std::string& folder, bool is_live) {
    const auto names = files_.List(folder);
    if (Told(names.status())) return;
    std::optional<size_t> newest;
    for (const std::string& name : *names) {
      const std::string path = absl::StrCat(folder, "/", name);
      const auto kind = SequenceOfFileName(name) ? files_.KindOf(path) : Files::Kind::kOther;
      if (!kind.ok() || *kind != Files::Kind::kFile) continue;
      const auto bytes = files_.DiskBytesOf(path);
      const auto modified_ns = files_.ModifiedAt_ns(path);
      if (Told(bytes.status()) || Told(modified_ns.status())) continue;
      newest = found_.size();
      found_.push_back({.path = path,
                        .folder = folder,
                        .bytes = *bytes + kFileCost,
                        .modified_ns = *modified_ns});
    }
    if (!newest) return;
    found_[*newest].must_stay = is_live;
    found_[*newest].bytes += kFolderCost;  // goes with its last file
  }

  void Apply(const Retention& retention, int64_t realtime_ns) {
    std::ranges::sort(found_, [](const OldFile& a, const OldFile& b) {
      return std::tie(a.modified_ns, a.path) < std::tie(b.modified_ns, b.path);
    });
    if (retention.max_age_ns) RemoveOlder(realtime_ns - *retention.max_age_ns);
    if (retention.max_bytes) RemoveUntilFits(*retention.max_bytes);
  }

  // Those that a file was removed from, and their agents'.
  void RemoveEmptyFolders(const std::function<bool(const std::string&)>& is_live) {
    std::ranges::sort(emptied_);
    const auto repeated = std::ranges::unique(emptied_);
    emptied_.erase(repeated.begin(), repeated.end());
    for (const std::string& folder : emptied_) {
      if (is_live(folder) || !RemoveIfEmpty(folder)) continue;
      RemoveIfEmpty(ParentOf(folder));
    }
  }

 private:
  bool RemoveIfEmpty(const std::string& folder) {
    const auto names = files_.List(folder);
    return names.ok() && names->empty() && !Told(files_.RemoveDirectory(folder));
  }

  bool Remove(const OldFile& file) {
    if (file.must_stay || Told(files_.Remove(file.path))) return false;
    ++removed_->files;
    removed_->bytes += file.bytes;
    if (emptied_.empty() || emptied_.back() != file.folder) emptied_.push_back(file.folder);
    return true;
  }

  void RemoveOlder(int64_t realtime_ns) {
    std::erase_if(found_, [&](const OldFile& file) {
      return file.modified_ns < realtime_ns && Remove(file);
    });
  }

  // Whoever has the most gives the oldest, so that one that fills the disk pays itself.
  void RemoveUntilFits(uint64_t max_bytes) {
    struct Agent {
      uint64_t bytes = 0;
      std::deque<const OldFile*> files;  // the oldest first
    };
    std::map<std::string, Agent> agents;
    uint64_t left = 0;
    for (const OldFile& file : found_) {
      Agent& agent = agents[ParentOf(file.folder)];
      agent.bytes += file.bytes;
      agent.files.push_back(&file);
      left += file.bytes;
    }
    // By bytes, then by the age of the oldest file.
    const auto has_less = [](const Agent* a, const Agent* b) {
      const auto& [oldest_a, oldest_b] = std::pair(a->files.front(), b->files.front());
      return std::tie(a->bytes, oldest_b->modified_ns, oldest_b->path) <
             std::tie(b->bytes, oldest_a->modified_ns, oldest_a->path);
    };
    std::set<Agent*, decltype(has_less)> giving(has_less);
    for (auto& [folder, agent] : agents) giving.insert(&agent);
    while (left > max_bytes && !giving.empty()) {
      Agent* agent = giving.extract(std::prev(giving.end())).value();
      const OldFile& oldest = *agent->files.front();
      agent->files.pop_front();
      if (Remove(oldest)) {
        agent->bytes -= oldest.bytes;
        left -= oldest.bytes;
      }
      if (!agent->files.empty()) giving.insert(agent);
    }
  }

  // Whether it is an error. What has gone in the meantime is none.
  bool Told(const absl::Status& status) {
    if (status.ok()) return false;
    if (!absl::IsNotFound(status)) removed_->errors.emplace_back(status.message());
    return true;
  }

  Files& files_;
  Removed* removed_;
  std::vector<OldFile> found_;
  std::vector<std::string> emptied_;
};

}  // namespace

bool WallClock::IsPlausible(int64_t realtime_ns, int64_t boottime_ns) {
  constexpr int64_t kJump_ns = 3600 * int64_t{1'000'000'000};
  constexpr int64_t kAcceptAfter_ns = 24 * kJump_ns;
  const int64_t offset_ns = realtime_ns - boottime_ns;
  const auto is_near = [&](const std::optional<int64_t>& other_ns) {
    return other_ns && std::abs(offset_ns - *other_ns) <= kJump_ns;
  };
  if (!offset_ns_ || is_near(offset_ns_)) {
    offset_ns_ = offset_ns;
    jumped_to_ns_.reset();
    return true;
  }
  if (!is_near(jumped_to_ns_)) {
    jumped_to_ns_ = offset_ns;
    jumped_at_ns_ = boottime_ns;
  }
  if (boottime_ns - jumped_at_ns_ < kAcceptAfter_ns) return false;
  offset_ns_ = offset_ns;
  jumped_to_ns_.reset();
  return true;
}

absl::StatusOr<Removed> ApplyRetention(
    Files& files, const std::string& directory, const Retention& retention, int64_t realtime_ns,
    const std::function<bool(const std::string& stream_directory)>& is_live) {
  if (const auto names = files.List(directory); !names.ok()) return names.status();
  Removed removed;
  Sweep sweep(files, &removed);
  for (const std::string& agent : sweep.Folders(directory)) {
    const std::string agent_folder = absl::StrCat(directory, "/", agent);
    for (const std::string& stream : sweep.Folders(agent_folder)) {
      if (!StreamOfFolder(stream)) continue;
      const std::string folder = absl::StrCat(agent_folder, "/", stream);
      sweep.Find(folder, is_live(folder));
    }
  }
  sweep.Apply(retention, realtime_ns);
  sweep.RemoveEmptyFolders(is_live);
  return removed;
}

Retainer::Retainer(Files& files, std::string directory, const Retention& retention,
                   int64_t realtime_ns, std::function<void(const std::string&)> say)
    : files_(files), directory_(std::move(directory)), retention_(retention), say_(std::move(say)) {
  wall_clock_.IsPlausible(realtime_ns, ClockNow_ns(CLOCK_BOOTTIME));
}

bool Retainer::Apply(int64_t realtime_ns,
                     const std::function<bool(const std::string& stream_directory)>& is_live) {
  const bool is_plausible = wall_clock_.IsPlausible(realtime_ns, ClockNow_ns(CLOCK_BOOTTIME));
  Retention retention = retention_;
  if (!is_plausible && retention.max_age_ns) {
    retention.max_age_ns.reset();
    if (!said_clock_) {
      say_(
          "the wall clock has jumped: --keep-for removes nothing until it has jumped back, or has "
          "been as it is for 24 h");
    }
  }
  said_clock_ = !is_plausible;
  if (!retention.max_age_ns && !retention.max_bytes) return false;
  const auto removed = ApplyRetention(files_, directory_, retention, realtime_ns, is_live);
  if (!removed.ok()) {
    say_(std::string(removed.status().message()));
    return false;
  }
  for (const std::string& error : removed->errors) say_(error);
  if (removed->files == 0) return false;
  say_(absl::StrCat("removed by --keep-for or --keep-size: ", Plural(removed->files, "file"), ", ",
                    Plural(removed->bytes, "byte")));
  return true;
}

}  // namespace vcpulse::stream

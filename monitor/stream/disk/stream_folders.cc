#include "monitor/stream/disk/stream_folders.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "monitor/stream/disk/names.h"

namespace vcpulse::stream {

absl::StatusOr<std::string> StreamFolders::FolderOf(const std::string& agent_folder,
                                                    const timeline::StreamId& stream,
                                                    int64_t start_realtime_ns) {
  const std::string agent_directory = absl::StrCat(directory_, "/", agent_folder);
  auto agent = agents_.find(agent_folder);
  if (agent == agents_.end()) {
    auto names = List(agent_directory);
    if (!names.ok()) return names.status();
    agent = agents_.emplace(agent_folder, *std::move(names)).first;
  }
  Names& names = agent->second;
  auto name = names.find(stream);
  if (name == names.end()) {
    if (names.size() >= most_streams_) {
      return absl::OutOfRangeError(
          absl::StrCat(agent_directory, " holds ", names.size(),
                       " streams, the most that one agent may have: remove old ones, or let "
                       "--keep-for or --keep-size do it"));
    }
    const std::string start = absl::FormatTime(
        "%Y%m%dT%H%M%SZ", absl::FromUnixNanos(start_realtime_ns), absl::UTCTimeZone());
    name = names.emplace(stream, absl::StrCat(start, "-", ToHex(stream))).first;
  }
  return absl::StrCat(agent_directory, "/", name->second);
}

// Of two folders of one stream the later one.
absl::StatusOr<StreamFolders::Names> StreamFolders::List(const std::string& agent_directory) const {
  Names found;
  const auto names = files_.List(agent_directory);
  if (absl::IsNotFound(names.status())) return found;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const auto stream = StreamOfFolder(name);
    if (!stream) continue;
    const auto kind = files_.KindOf(absl::StrCat(agent_directory, "/", name));
    if (!kind.ok()) return kind.status();
    if (*kind == Files::Kind::kDirectory) found[*stream] = name;
  }
  return found;
}

}  // namespace vcpulse::stream

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// A stream on the collector. Ids of streams are the agents' own choice, so one agent's stream is
// never another's, whatever its id.
struct StreamKey {
  std::string agent_folder;  // FolderOf(agent id)
  timeline::StreamId stream{};

  auto operator<=>(const StreamKey&) const = default;
};

// Finds the folder of a stream: DIR/AGENT/START-STREAMID, where START is the UTC time at which it
// began (20261122T061047Z), so that names sort by time. An agent's folder is
// listed once and remembered, as listing takes long where there are many streams. One thread.
class StreamFolders {
 public:
  // Of one agent; a stream is a folder, and each costs an inode and a block at least.
  static constexpr size_t kMostStreams = 10'000;

  StreamFolders(Files& files, std::string directory, size_t most_streams = kMostStreams)
      : files_(files), directory_(std::move(directory)), most_streams_(most_streams) {}

  // The folder that is there, or else the path of a new one, which is not made yet, of a stream
  // that began at `start_realtime_ns`. Errors: what the system said; OutOfRange for a new stream of
  // an agent that has too many.
  absl::StatusOr<std::string> FolderOf(const std::string& agent_folder,
                                       const timeline::StreamId& stream, int64_t start_realtime_ns);

  // Somebody has removed folders: they are listed again.
  void Forget() { agents_.clear(); }

 private:
  using Names = std::map<timeline::StreamId, std::string>;

  absl::StatusOr<Names> List(const std::string& agent_directory) const;

  Files& files_;
  const std::string directory_;
  const size_t most_streams_;
  std::map<std::string, Names> agents_;  // by their folders
};

}  // namespace vcpulse::stream

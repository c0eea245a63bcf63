#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "monitor/follow/chunk_printer.h"
#include "monitor/follow/growing_file.h"

namespace vcpulse::follow {

// Timelines below a folder as a collector fills it (the collector's folder, an agent's or a
// stream's), or one file, while they grow. Where it has not looked yet, in new folders and files,
// it begins at the beginning. One thread.
class FollowedFolders {
 public:
  struct Options {
    std::string path;
    std::optional<std::string> agent{};  // nothing: all
    bool from_start = false;
    uint64_t last_ticks = 10;  // of the newest stream of each agent to begin with
    std::function<void(const std::string&)> say{};  // takes a line for people
  };
  // One chunk; the records before the sequence number `from` are older than what was asked for.
  using Sink =
      std::function<absl::Status(const ChunkOwner&, std::span<const uint8_t>, uint64_t from)>;

  // Looks at what is there and decides where to begin. Errors: what the system said of `path`,
  // naming it; InvalidArgument for what is neither folder nor file.
  static absl::StatusOr<FollowedFolders> Open(const Options& options);

  // Hands over what is new. A file or folder that is gone is no error. A file of a folder that
  // cannot be read (a chunk of a later release, rights) is said once per stream, and the others go
  // on. Errors: of reading the file that is followed alone, and of `sink`.
  absl::Status Poll(const Sink& sink);

  // Agents that were found beside the one that is followed, in order; none where all are.
  const std::set<std::string>& other_agents() const { return other_agents_; }
  // Whether a stream is followed, or was.
  bool has_found_any() const { return has_found_any_; }

  // Bytes that were passed over, as they are no chunk.
  uint64_t damaged_bytes() const;

 private:
  // The names in a folder, kept while it does not change.
  struct Listing {
    int64_t modified_ns = 0;
    bool is_settled = false;  // a change since would show in modified_ns
    std::vector<std::string> folders;
    std::vector<std::string> timelines;  // *.vpt
  };
  // A folder with timelines of one stream, in the order of their names.
  struct StreamFolder {
    ChunkOwner owner;
    uint64_t from = 0;
    std::string first_name;  // those before it are read to their end
    std::map<std::string, GrowingFile> files;
    bool was_said = false;  // that one of them cannot be read
  };

  explicit FollowedFolders(const Options& options) : options_(options) {}

  const Listing& ListingOf(const std::string& folder);
  void FindIn(const std::string& folder, int depth, bool is_newest);
  void Take(const std::string& folder, int depth, bool is_newest);
  std::optional<std::string> AgentOf(const std::string& folder) const;
  absl::Status PollStream(const std::string& folder, const std::vector<std::string>& names,
                          StreamFolder& stream, const Sink& sink) const;

  Options options_;
  bool is_first_look_ = true;
  std::map<std::string, Listing> listings_;
  std::map<std::string, StreamFolder> streams_;  // by path
  std::set<std::string> other_agents_;
  bool has_found_any_ = false;
  uint64_t damaged_bytes_ = 0;  // of files that are no longer followed
};

// Where the last `ticks` ticks of a stream begin, whose files are given in order: the file's place
// among them, the chunk's offset in it, and the sequence number of the first record of them.
struct LastTicks {
  size_t file = 0;
  uint64_t offset = 0;
  uint64_t from = 0;
};
// Reads from the end. With 0 ticks, the end. What cannot be read counts as nothing.
LastTicks FindLastTicks(const std::vector<std::string>& paths, uint64_t ticks);

}  // namespace vcpulse::follow

#include "monitor/follow/followed_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kvm/base/clock.h"
#include "kvm/base/text.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::follow {
namespace {

namespace fs = std::filesystem;

constexpr int kDepthOfStreams = 2;  // below the collector's folder: DIR/AGENT/STREAM
constexpr int64_t kCoarseTimes_ns = 2'000'000'000;  // of file systems, at the worst

std::string JoinPath(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::vector<std::string> PathsOf(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const std::string& name : names) paths.push_back(JoinPath(folder, name));
  return paths;
}

// The file of that name begins behind the last ticks.
GrowingFile Begun(const std::string& path, const LastTicks& begin) {
  return GrowingFile(path, begin.offset);
}

// The sequence numbers of the records that are the first of their tick, in order.
std::vector<uint64_t> BeginningsOfTicks(std::span<const uint8_t> chunk) {
  std::vector<uint64_t> beginnings;
  timeline::ChunkDecoder decoder;
  const auto header = timeline::DecodeChunkHeader(chunk);
  if (!header.ok() || !decoder.Open(*header, chunk.subspan(header->header_bytes)).ok()) {
    return beginnings;
  }
  std::optional<uint64_t> latest;
  while (const timeline::Entry* entry = decoder.Next()) {
    const auto* tick = std::get_if<timeline::TickEntry>(&entry->record);
    if (tick == nullptr || latest == tick->sample.tick) continue;
    latest = tick->sample.tick;
    beginnings.push_back(entry->sequence);
  }
  return beginnings;
}

}  // namespace

absl::StatusOr<FollowedFolders> FollowedFolders::Open(const Options& options) {
  struct stat info{};
  if (::stat(options.path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", Printable(options.path)));
  }
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(options.path), " is neither a folder nor a file"));
  }
  FollowedFolders followed(options);
  if (S_ISREG(info.st_mode)) {
    if (absl::Status status = GrowingFile(options.path).CheckBeginning(); !status.ok()) {
      return status;
    }
    const std::vector<std::string> path = {options.path};
    const LastTicks begin =
        options.from_start ? LastTicks() : FindLastTicks(path, options.last_ticks);
    StreamFolder& stream = followed.streams_[""];
    followed.has_found_any_ = true;
    stream.from = begin.from;
    stream.files.emplace(options.path, Begun(options.path, begin));
    return followed;
  }
  std::error_code error;
  fs::directory_iterator readable(options.path, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot read ", Printable(options.path)));
  }
  std::error_code unknown;
  const fs::path absolute = fs::canonical(options.path, unknown);
  if (!unknown) followed.options_.path = absolute.string();
  followed.FindIn(followed.options_.path, 0, true);
  followed.is_first_look_ = false;
  return followed;
}

const FollowedFolders::Listing& FollowedFolders::ListingOf(const std::string& folder) {
  Listing& listing = listings_[folder];
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) return listing = Listing();
  const int64_t modified_ns = ToNs(info.st_mtim);
  if (listing.is_settled && listing.modified_ns == modified_ns) return listing;
  listing = {.modified_ns = modified_ns,
             .is_settled = RealtimeNow_ns() - modified_ns > kCoarseTimes_ns};
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code gone;
    if (at->is_directory(gone)) {
      listing.folders.push_back(name);
    } else if (name.ends_with(".vpt")) {
      listing.timelines.push_back(name);
    }
  }
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.timelines);
  return listing;
}

void FollowedFolders::FindIn(const std::string& folder, int depth, bool is_newest) {
  const Listing listing = ListingOf(folder);
  if (!listing.timelines.empty()) Take(folder, depth, is_newest);
  if (depth == kDepthOfStreams) return;
  for (const std::string& name : listing.folders) {
    // Of the streams of an agent; agents are all alike.
    const bool newest = !stream::StreamOfFolder(name) || name == listing.folders.back();
    FindIn(JoinPath(folder, name), depth + 1, newest);
  }
}

// Begins to follow the timelines of a folder that was not known.
void FollowedFolders::Take(const std::string& folder, int depth, bool is_newest) {
  if (streams_.contains(folder)) return;
  const std::optional<std::string> agent = AgentOf(folder);
  if (options_.agent && agent != options_.agent) {
    if (agent) other_agents_.insert(*agent);
    return;
  }
  has_found_any_ = true;
  StreamFolder& stream = streams_[folder];
  stream.owner = {.agent = agent, .say_agent = agent && depth == kDepthOfStreams};
  if (!is_first_look_ || options_.from_start) return;
  const std::vector<std::string>& names = ListingOf(folder).timelines;
  const LastTicks begin =
      FindLastTicks(PathsOf(folder, names), is_newest ? options_.last_ticks : 0);
  if (begin.file == names.size()) return;  // none can be read yet
  stream.from = begin.from;
  stream.first_name = names[begin.file];
  stream.files.emplace(names[begin.file], Begun(JoinPath(folder, names[begin.file]), begin));
}

std::optional<std::string> FollowedFolders::AgentOf(const std::string& folder) const {
  const fs::path path(folder);
  if (!stream::StreamOfFolder(path.filename().string())) return std::nullopt;
  return stream::AgentIdOf(path.parent_path().filename().string());
}

absl::Status FollowedFolders::Poll(const Sink& sink) {
  if (!streams_.contains("")) FindIn(options_.path, 0, true);
  for (auto& [folder, stream] : streams_) {
    const std::vector<std::string> names =
        folder.empty() ? std::vector{options_.path} : ListingOf(folder).timelines;
    if (absl::Status status = PollStream(folder, names, stream, sink); !status.ok()) return status;
    // Those before the last two grow no more: a collector appends to the last.
    while (stream.files.size() > 2) {
      damaged_bytes_ += stream.files.begin()->second.damaged_bytes();
      stream.files.erase(stream.files.begin());
    }
    if (!stream.files.empty()) stream.first_name = stream.files.begin()->first;
  }
  std::erase_if(streams_, [this](const auto& entry) {
    return !entry.first.empty() && ListingOf(entry.first).timelines.empty();
  });
  return absl::OkStatus();
}

absl::Status FollowedFolders::PollStream(const std::string& folder,
                                         const std::vector<std::string>& names,
                                         StreamFolder& stream, const Sink& sink) const {
  for (const std::string& name : names) {
    if (name < stream.first_name) continue;
    auto file = stream.files.find(name);
    if (file == stream.files.end()) {
      file = stream.files.emplace(name, GrowingFile(JoinPath(folder, name))).first;
    }
    absl::Status of_sink;
    absl::Status status = file->second.ReadNew([&](std::span<const uint8_t> chunk) {
      return of_sink = sink(stream.owner, chunk, stream.from);
    });
    if (!of_sink.ok()) return of_sink;
    if (status.ok() || absl::IsNotFound(status)) continue;
    if (folder.empty()) return status;
    if (!std::exchange(stream.was_said, true) && options_.say) {
      options_.say(absl::StrCat("warning: ", status.message()));
    }
  }
  return absl::OkStatus();
}

uint64_t FollowedFolders::damaged_bytes() const {
  uint64_t bytes = damaged_bytes_;
  for (const auto& [folder, stream] : streams_) {
    for (const auto& [name, file] : stream.files) bytes += file.damaged_bytes();
  }
  return bytes;
}

LastTicks FindLastTicks(const std::vector<std::string>& paths, uint64_t ticks) {
  LastTicks found{.file = paths.size()};
  for (size_t file = paths.size(); file-- > 0;) {
    const GrowingFile growing(paths[file]);
    const auto places = growing.ListChunks();
    if (!places.ok()) continue;
    if (found.file == paths.size()) found = {.file = file, .offset = places->end};
    for (size_t i = places->chunks.size(); i-- > 0 && ticks > 0;) {
      const auto chunk = growing.ReadChunk(places->chunks[i]);
      if (!chunk.ok()) continue;
      const std::vector<uint64_t> beginnings = BeginningsOfTicks(*chunk);
      const uint64_t taken = std::min<uint64_t>(ticks, beginnings.size());
      ticks -= taken;
      found = {.file = file, .offset = places->chunks[i]};
      if (taken > 0) found.from = beginnings[beginnings.size() - taken];
    }
    if (ticks == 0) break;
  }
  if (ticks > 0) found.from = 0;  // there are no more: all of it
  return found;
}

}  // namespace vcpulse::follow

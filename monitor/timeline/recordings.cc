#include "monitor/timeline/recordings.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/folder_source.h"

namespace vcpulse::timeline {
namespace {

namespace fs = std::filesystem;

constexpr int kLevels = 2;  // DIR/AGENT/STREAM of a collector

// START-STREAMID, as a collector names them.
bool IsNameOfStream(const std::string& name) {
  constexpr size_t kDigits = 2 * std::tuple_size_v<StreamId>;
  const size_t dash = name.rfind('-');
  return dash != std::string::npos && name.size() - dash - 1 == kDigits &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
}

std::string AgentOf(const std::string& folder) {
  std::error_code unknown;
  fs::path path = fs::absolute(folder, unknown).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // "DIR/"
  return IsNameOfStream(path.filename()) ? path.parent_path().filename().string() : "";
}

class Finding {
 public:
  absl::Status Take(const std::string& path);
  std::vector<Recording> recordings() && {
    std::vector<Recording> all;
    all.reserve(found_.size());
    for (Found& found : found_) all.push_back(std::move(found.recording));
    return all;
  }

 private:
  struct Found {
    std::optional<StreamId> stream;
    Recording recording;
  };

  absl::Status TakeFolder(const std::string& folder, int levels_below);
  void Add(const std::string& agent, const std::optional<StreamId>& stream,
           const std::string& path);

  std::vector<Found> found_;
};

absl::Status Finding::Take(const std::string& path) {
  std::error_code error;
  const fs::file_status status = path == "-" ? fs::file_status() : fs::status(path, error);
  if (path != "-" && !fs::exists(status)) {
    return absl::ErrnoToStatus(error ? error.value() : ENOENT, absl::StrCat("cannot read ", path));
  }
  if (!fs::is_directory(status)) {
    Add("", fs::is_regular_file(status) ? StreamOf(path) : std::nullopt, path);
    return absl::OkStatus();
  }
  const size_t before = found_.size();
  size_t parts_before = 0;
  for (const Found& each : found_) parts_before += each.recording.paths.size();
  if (absl::Status taken = TakeFolder(path, kLevels); !taken.ok()) return taken;
  size_t parts = 0;
  for (const Found& each : found_) parts += each.recording.paths.size();
  if (found_.size() > before || parts > parts_before) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is a directory that holds no timeline (*.vpt), nor do those below it"));
}

absl::Status Finding::TakeFolder(const std::string& folder, int levels_below) {
  const auto files = TimelinesIn(folder);
  if (!files.ok()) return files.status();
  std::vector<std::pair<StreamId, std::string>> parts;
  for (const std::string& file : *files) {
    if (const auto stream = StreamOf(file)) parts.emplace_back(*stream, file);
  }
  const bool is_one = std::ranges::all_of(
      parts, [&parts](const auto& part) { return part.first == parts.front().first; });
  const std::string agent = AgentOf(folder);
  if (is_one && !parts.empty()) {
    Add(agent, parts.front().first, folder);
  } else {
    for (const auto& [stream, file] : parts) Add(agent, stream, file);
  }
  if (!files->empty() || levels_below == 0) return absl::OkStatus();
  std::vector<std::string> below;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const bool is_hidden = at->path().filename().string().starts_with('.');
    std::error_code gone;
    if (!is_hidden && at->symlink_status(gone).type() == fs::file_type::directory) {
      below.push_back(at->path());
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot read directory ", folder));
  }
  std::ranges::sort(below);
  for (const std::string& each : below) {
    if (absl::Status taken = TakeFolder(each, levels_below - 1); !taken.ok()) return taken;
  }
  return absl::OkStatus();
}

void Finding::Add(const std::string& agent, const std::optional<StreamId>& stream,
                  const std::string& path) {
  for (Found& each : found_) {
    std::string& known = each.recording.agent;
    const bool is_of_agent = known == agent || known.empty() || agent.empty();
    if (!stream || each.stream != stream || !is_of_agent) continue;
    if (known.empty()) known = agent;
    std::vector<std::string>& paths = each.recording.paths;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    return;
  }
  found_.push_back({.stream = stream, .recording = {.agent = agent, .paths = {path}}});
}

}  // namespace

absl::StatusOr<std::vector<Recording>> FindRecordings(const std::vector<std::string>& paths) {
  Finding finding;
  for (const std::string& path : paths) {
    if (absl::Status taken = finding.Take(path); !taken.ok()) return taken;
  }
  return std::move(finding).recordings();
}

}  // namespace vcpulse::timeline

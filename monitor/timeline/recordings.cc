#include "monitor/timeline/recordings.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
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

class Finding {
 public:
  void Take(const std::string& path);
  FoundRecordings found() &&;

 private:
  struct Found {
    std::optional<StreamId> stream;
    Recording recording;
  };

  void TakeFolder(const std::string& folder, int levels_below);
  void Add(const std::optional<StreamId>& stream, const std::string& path);
  void LeaveOut(int error, const std::string& what);

  std::vector<Found> found_;
  std::vector<absl::Status> left_out_;
  uint64_t parts_ = 0;  // that were found, each time that they were
};

void Finding::Take(const std::string& path) {
  std::error_code error;
  const fs::file_status status = path == "-" ? fs::file_status() : fs::status(path, error);
  if (path != "-" && !fs::exists(status)) {
    return LeaveOut(error ? error.value() : ENOENT, absl::StrCat("cannot read ", path));
  }
  if (!fs::is_directory(status)) {
    return Add(fs::is_regular_file(status) ? StreamOf(path) : std::nullopt, path);
  }
  const uint64_t parts_before = parts_;
  const size_t left_out_before = left_out_.size();
  TakeFolder(path, kLevels);
  if (parts_ > parts_before || left_out_.size() > left_out_before) return;
  left_out_.push_back(absl::InvalidArgumentError(
      absl::StrCat(path, " is a directory that holds no timeline (*.vpt), nor do those below it")));
}

void Finding::TakeFolder(const std::string& folder, int levels_below) {
  const auto files = TimelinesIn(folder);
  if (!files.ok()) return left_out_.push_back(files.status());
  std::vector<std::pair<StreamId, std::string>> parts;
  for (const std::string& file : *files) {
    if (const auto stream = StreamOf(file)) parts.emplace_back(*stream, file);
  }
  const bool is_one = std::ranges::all_of(
      parts, [&parts](const auto& part) { return part.first == parts.front().first; });
  if (is_one && !parts.empty()) {
    Add(parts.front().first, folder);
  } else {
    for (const auto& [stream, file] : parts) Add(stream, file);
  }
  if (!files->empty() || levels_below == 0) return;
  std::vector<std::string> below;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const bool is_hidden = at->path().filename().string().starts_with('.');
    std::error_code gone;
    if (!is_hidden && at->symlink_status(gone).type() == fs::file_type::directory) {
      below.push_back(at->path());
    }
  }
  if (error) LeaveOut(error.value(), absl::StrCat("cannot read directory ", folder));
  std::ranges::sort(below);
  for (const std::string& each : below) TakeFolder(each, levels_below - 1);
}

void Finding::Add(const std::optional<StreamId>& stream, const std::string& path) {
  ++parts_;
  for (Found& each : found_) {
    if (!stream || each.stream != stream) continue;
    std::vector<std::string>& paths = each.recording.paths;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    return;
  }
  found_.push_back({.stream = stream, .recording = {.paths = {path}}});
}

void Finding::LeaveOut(int error, const std::string& what) {
  left_out_.push_back(absl::ErrnoToStatus(error, what));
}

FoundRecordings Finding::found() && {
  FoundRecordings all{.recordings = {}, .left_out = std::move(left_out_)};
  all.recordings.reserve(found_.size());
  for (Found& found : found_) all.recordings.push_back(std::move(found.recording));
  return all;
}

}  // namespace

FoundRecordings FindRecordings(const std::vector<std::string>& paths) {
  Finding finding;
  for (const std::string& path : paths) finding.Take(path);
  return std::move(finding).found();
}

}  // namespace vcpulse::timeline

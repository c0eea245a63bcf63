#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace vcpulse::timeline {

// A recording: the files and folders that hold parts of it, as Input::Join takes them.
struct Recording {
  std::vector<std::string> paths;
};

struct FoundRecordings {
  // In the order in which they are found, folders by their names.
  std::vector<Recording> recordings;
  // Of paths and folders below them that gave none: what the system said, or InvalidArgument for a
  // directory that holds no timeline. Each names the path.
  std::vector<absl::Status> left_out;
};

// The recordings in files, in folders of timelines, and in what a collector keeps: an agent's
// folder, or all of its directory. Parts of one recording come together by its stream, whatever
// folders hold them; what is named twice is there once. "-" is standard input. Reads one header of
// each file.
FoundRecordings FindRecordings(const std::vector<std::string>& paths);

}  // namespace vcpulse::timeline

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace vcpulse::timeline {

// A recording and the files and folders that hold parts of it, as Input::Join takes them.
struct Recording {
  std::string agent;  // the folder's name above the recording's, where a collector made them
  std::vector<std::string> paths;
};

// The recordings in files, in folders of timelines, and in what a collector keeps: an agent's
// folder, or all of its directory. Parts that several of them hold of one recording of one agent
// come together; a part whose agent is not known goes to the first recording of its stream. In the
// order in which they are found, folders by their names. "-" is standard input. Reads one header of
// each file. Errors: what the system said, naming the path; InvalidArgument for a directory that
// holds none.
absl::StatusOr<std::vector<Recording>> FindRecordings(const std::vector<std::string>& paths);

}  // namespace vcpulse::timeline

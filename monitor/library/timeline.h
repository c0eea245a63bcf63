#pragma once

#include <memory>
#include <string>

#include "monitor/library/contents.h"
#include "monitor/library/temporary_folder.h"

struct vcpulse_timeline {
  std::string path;
  vcpulse::library::Contents contents;
  // Removed with the timeline; null where the output was named, and for one that was opened.
  std::unique_ptr<vcpulse::library::TemporaryFolder> folder;
};

namespace vcpulse::library {

// Errors: of ReadContents.
absl::StatusOr<std::unique_ptr<vcpulse_timeline>> OpenTimeline(
    const std::string& path, std::unique_ptr<TemporaryFolder> folder);

}  // namespace vcpulse::library

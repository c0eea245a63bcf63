#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_header.h"

namespace vcpulse::timeline {

// The regular files in a directory whose names end in .vpt, as paths in the order of their names;
// links to such files too. Errors: of opendir(3).
absl::StatusOr<std::vector<std::string>> TimelinesIn(const std::string& directory);

// The same; InvalidArgument, naming folders below that hold some, where there is none.
absl::StatusOr<std::vector<std::string>> PartsIn(const std::string& directory);

// The stream of the first chunk of a file whose header can be read; nothing where there is none.
std::optional<StreamId> StreamOf(const std::string& file);

// Of files, the first one of each recording that they hold, with how many files it has beside it; a
// file where no chunk can be read belongs to none.
std::vector<std::string> RecordingsOf(const std::vector<std::string>& files);
inline constexpr size_t kShownRecordings = 4;  // in a message; of the others, how many

// InvalidArgument, naming them, where a directory holds timelines of several recordings.
absl::Status CheckOneRecording(const std::string& directory);

// What OpenByteSource gives for a directory. Where the sequence numbers go back in it, as chunks
// of a shared stream come in any order, it is joined by them (input.h), as it is then.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFolderSource(const std::string& directory);

}  // namespace vcpulse::timeline

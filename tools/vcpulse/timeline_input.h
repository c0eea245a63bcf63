#pragma once

// What the commands that read a timeline say of it.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvm/base/fd.h"
#include "monitor/timeline/input.h"
#include "monitor/timeline/reader.h"

namespace CLI {
class App;
}

namespace vcpulse::tools {

// What is read, and what `record` writes, where no file is named.
inline constexpr const char* kDefaultTimeline = "vcpulse.vpt";

// "standard input" for `-`.
std::string NameOf(const std::string& file);

// Adds FILE... to `command`: one recording, whose parts are joined, unless `help` says otherwise;
// kDefaultTimeline where none is given. `files` must live as long as `command`.
void AddInputOption(CLI::App& command, std::vector<std::string>& files,
                    const std::string& help =
                        "timeline, or a folder of its parts; several are joined as parts of one "
                        "recording; - is standard input");

// Why a timeline could not be read, with advice where there is no such file.
absl::Status ReadFailure(const absl::Status& status, const timeline::Input& input);

// Reads a timeline. Errors: what `sink` returned as it is, else ReadFailure.
absl::StatusOr<timeline::ReadReport> ReadInput(const timeline::Input& input,
                                               const timeline::EntrySink& sink);

// Prints a warning about the file on stderr; nothing where `text` is empty.
void Warn(const std::string& file, const std::string& text);

// All bytes of a file; `-` is standard input. Errors, all of which name the file: what the system
// said, and ResourceExhausted beyond `at_most` bytes.
absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t at_most);
// From where `fd` stands on; `file` is its name.
absl::StatusOr<std::string> ReadWhole(const Fd& fd, const std::string& file, size_t at_most);

// `file` open for reading, as often as needed with pread(2); `-` is standard input. What cannot be
// read twice, such as a pipe, is first copied to a file without a name in $TMPDIR [/tmp]. Errors,
// all of which name the file: what the system said.
absl::StatusOr<Fd> OpenRereadable(const std::string& file);

// InvalidArgument where writing `output` would overwrite, or put aside as OUTPUT.old, the regular
// file that `input` is read from, or would add to the folder of timelines that it is. `-` are
// standard input and output. `flag` is what named the output.
absl::Status CheckNotSameFile(const std::string& input, const std::string& output,
                              const std::string& flag = "--output");
// The same for each of `inputs`.
absl::Status CheckNotSameFile(const std::vector<std::string>& inputs, const std::string& output,
                              const std::string& flag = "--output");

}  // namespace vcpulse::tools

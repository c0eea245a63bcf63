#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "monitor/timeline/chunk_header.h"

namespace vcpulse::stream {

// 32 lower-case hexadecimal digits, and back; nothing for any other text.
std::string ToHex(const timeline::StreamId& stream);
std::optional<timeline::StreamId> StreamOfHex(const std::string& text);

// The name of the file whose first record is `first_sequence`: 20 digits and ".vpt", and back.
std::string FileNameOf(uint64_t first_sequence);
std::optional<uint64_t> SequenceOfFileName(const std::string& name);

// The stream whose folder has that name, START-STREAMID; nothing for any other name.
std::optional<timeline::StreamId> StreamOfFolder(const std::string& name);

// The folder that a path lies in: "." for a name alone.
std::string ParentOf(const std::string& path);

}  // namespace vcpulse::stream

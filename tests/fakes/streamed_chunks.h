#pragma once

// Chunks of one stream as an agent offers them, and what a collector's folder holds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "monitor/stream/disk/chunk_list.h"
#include "monitor/stream/disk/files.h"
#include "monitor/timeline/chunk_header.h"
#include "monitor/timeline/reader.h"
#include "monitor/timeline/writer.h"

namespace vcpulse::fakes {

using Chunk = std::vector<uint8_t>;

// Chunks of `stream`: a Session, then markers of random texts, each chunk of 1 to 5 records and up
// to some `most_bytes`.
inline std::vector<Chunk> StreamedChunks(const timeline::StreamId& stream, size_t count,
                                         uint64_t seed, size_t most_bytes = 2000) {
  std::vector<Chunk> chunks;
  const auto writer = timeline::NewChunkWriter(stream, [&chunks](std::span<const uint8_t> bytes) {
    chunks.emplace_back(bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  std::minstd_rand random(static_cast<uint32_t>(seed + 1));
  v1::TimelineRecord session;
  session.mutable_session()->set_stream_id(std::string(stream.begin(), stream.end()));
  session.mutable_session()->set_host_name("host");
  writer->Add(session, 1);
  for (size_t i = 0; i < count; ++i) {
    const size_t records = 1 + random() % 5;
    for (size_t r = 0; r < records; ++r) {
      v1::TimelineRecord marker;
      std::string name(random() % (most_bytes / records) + 1, ' ');
      for (char& letter : name) letter = static_cast<char>('a' + random() % 26);
      marker.mutable_marker()->set_name(name);
      marker.mutable_marker()->set_mono_ns(static_cast<int64_t>(1000 * i + r));
      writer->Add(marker, static_cast<int64_t>(1000 * i + r));
    }
    v1::ClockSnapshot clock;
    clock.set_mono_ns(static_cast<int64_t>(1000 * i));
    EXPECT_TRUE(writer->Flush(clock).ok());
  }
  return chunks;
}

inline timeline::ChunkHeader HeaderOf(const Chunk& chunk) {
  return timeline::DecodeChunkHeader(chunk).value();
}

inline std::vector<std::filesystem::path> TimelineFiles(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".vpt") files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

inline Chunk ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What lies in a collector's folder: chunks with records, byte for byte, in order of files; and the
// ranges that are told as lost.
struct Collected {
  std::vector<Chunk> chunks;
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> lost;
  std::vector<Chunk> all;  // those that tell of losses too
  bool all_whole = true;   // no byte that is no chunk
};

// Of the timelines `paths`, in their order, each up to its first damage: what a machine that
// crashed left behind that was never promised.
inline Collected ReadCollected(stream::Files& files, const std::vector<std::string>& paths) {
  Collected collected;
  uint64_t settled = 0;
  for (const std::string& path : paths) {
    const auto list = stream::ListChunks(files, path);
    if (!list.ok()) {
      collected.all_whole = false;
      continue;
    }
    collected.all_whole = collected.all_whole && list->good_bytes == list->file_bytes;
    for (const stream::ChunkPlace& place : list->chunks) {
      if (place.offset >= list->good_bytes) break;
      Chunk bytes(place.bytes());
      const auto got = files.ReadAt(path, place.offset, bytes);
      EXPECT_TRUE(got.ok() && *got == bytes.size()) << path;
      collected.all.push_back(bytes);
      if (place.header.first_sequence > place.header.last_sequence) {
        collected.lost.push_back({settled + 1, place.settles_to});
      } else {
        collected.chunks.push_back(std::move(bytes));
      }
      settled = place.settles_to;
    }
  }
  return collected;
}

inline Collected ReadCollected(const std::filesystem::path& directory) {
  std::vector<std::string> paths;
  for (const auto& path : TimelineFiles(directory)) paths.push_back(path.string());
  return ReadCollected(stream::KernelFiles(), paths);
}

}  // namespace vcpulse::fakes

// Of followed_folders.h: where the last ticks of a stream begin.
#include <algorithm>
#include <variant>

#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_header.h"
#include "tools/vcpulse/followed_folders.h"

namespace vcpulse::tools {
namespace {

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

}  // namespace vcpulse::tools
